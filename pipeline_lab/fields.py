"""What the models of stages, workloads and options share: their base, and fields that several of them have."""

import ast
import inspect
import re
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from textwrap import dedent
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

MAX_FILES = 10_000


class Options(BaseModel):
    """Base of every options model: immutable, and an unknown name is an error rather than ignored.

    A docstring under a field is its description in the JSON schema. Only a schema reads them: Pydantic's own
    ``use_attribute_docstrings`` does so on import, which takes half of the time that importing all models takes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    labels: ClassVar[Mapping[str, str]] = {}
    """What a form calls a field whose name does not say it well."""
    matters: ClassVar[tuple[str, ...]] = ()
    """Fields that most people look at: a form folds the others, and a line about a stage always names these."""
    left_empty: ClassVar[Mapping[str, str]] = {}
    """What it means to leave a field empty; where nothing is said, the lab or TensorFlow chooses."""
    shown_with: ClassVar[Mapping[str, tuple[str, tuple[str, ...] | None]]] = {}
    """Fields that mean something only while another field has one of some values, or (None) any at all."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema)["properties"]
        for owner in (one for one in cls.__mro__ if one is not Options and issubclass(one, Options)):
            for name, text in _docstrings(owner).items():
                if name in properties:
                    properties[name].setdefault("description", text)
        return schema


@cache
def _docstrings(model: type) -> dict[str, str]:
    """Return the docstrings under a class's own fields."""
    (written,) = ast.parse(dedent(inspect.getsource(model))).body
    assert isinstance(written, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in pairwise(written.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
    }


def _empty_as_none(value: Any) -> Any:
    return None if isinstance(value, str) and value.strip().lower() in {"", "none", "serial"} else value


Autotune = Literal["autotune"]

Parallelism = Annotated[Annotated[int, Field(ge=1, le=1024)] | Autotune | None, BeforeValidator(_empty_as_none)]
"""How many calls run at once: a number, ``"autotune"``, or None for a serial stage."""


def parse_file_sizes(value: Any) -> Any:
    """Read ``"1000,2000,3000"`` or ``"8x512"`` (eight files of 512) into a tuple of examples per file."""
    if isinstance(value, int):
        return (value,)
    if not isinstance(value, str):
        return value
    sizes: list[int] = []
    for part in value.split(","):
        match = re.fullmatch(r"\s*(?:(\d{1,9})\s*[x×]\s*)?(\d{1,12})\s*", part)
        if not match:
            raise ValueError(f"{part.strip()!r} is not a size; write numbers like 1000,2000,3000 or 8x512")
        count = int(match[1] or 1)
        if len(sizes) + count > MAX_FILES:
            raise ValueError(f"more than {MAX_FILES} files")
        sizes.extend([int(match[2])] * count)
    return tuple(sizes)


FileSizes = Annotated[
    tuple[Annotated[int, Field(ge=1, le=10_000_000)], ...],
    BeforeValidator(parse_file_sizes),
    Field(min_length=1, max_length=MAX_FILES),
]
"""Examples in each file; written ``1000,2000,3000`` or ``8x512`` on the command line."""


def parse_numbers(value: Any) -> Any:
    """Read ``"10,20,40"`` into a tuple of numbers; anything else is left to be judged as it is."""
    if not isinstance(value, str):
        return (value,) if isinstance(value, int | float) else value
    try:
        return tuple(float(part) for part in value.split(","))
    except ValueError:
        raise ValueError(f"{value!r} is not a list of numbers; write them like 10,20,40") from None
