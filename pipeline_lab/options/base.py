"""What all option models share: frozen, strict about unknown names, JSON in and out."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class Options(BaseModel):
    """Base of every options model: immutable, and an unknown name is an error rather than ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


def _empty_as_none(value: Any) -> Any:
    return None if isinstance(value, str) and value.strip().lower() in {"", "none", "serial"} else value


Autotune = Literal["autotune"]

Parallelism = Annotated[Annotated[int, Field(ge=1, le=1024)] | Autotune | None, BeforeValidator(_empty_as_none)]
"""How many calls run at once: a number, ``"autotune"``, or None for a serial stage."""
