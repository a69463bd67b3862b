"""A workload of the user's own: a function or class in a module of theirs, and what it is called with."""

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_validator

from pipeline_lab.stages.code import INDENT, quote
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.workloads.workload import Workload

_TARGET = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)

_PART = re.compile(r'(?P<name>[^,=]*)(=(?P<text>\s*"([^"\\]|\\.)*"\s*|[^,]*))?(,|$)')
"""One argument in a line of them; commas within quotes are part of it."""


def parse_arguments(value: Any) -> Any:
    """Read ``"batch=64, shuffle=false"`` into arguments by name; values are JSON, or plain text."""
    if not isinstance(value, str):
        return _checked(value)
    arguments: dict[str, Any] = {}
    for match in _PART.finditer(value):
        name, text = match["name"].strip(), match["text"]
        if text is None and name:
            raise ValueError(f"{name[:80]!r} is not an argument; write name=value, such as batch=64, shuffle=false")
        if not name:
            continue
        text = text.strip()
        try:
            arguments[name] = json.loads(text)
        except ValueError:
            arguments[name] = text
    return _checked(arguments)


def _checked(value: Any) -> Any:
    for name, argument in value.items() if isinstance(value, dict) else ():
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"{str(name)[:80]!r} is not a valid argument name")
        if argument is not None and not isinstance(argument, bool | int | float | str):
            raise ValueError(f"{name} should be a number, a text, true, false or null")
    return value


Argument = bool | int | float | str | None
Arguments = Annotated[
    dict[str, Argument],
    BeforeValidator(parse_arguments),
    Field(max_length=100),
]
"""Numbers, texts, true, false or null by name; written ``batch=64, shuffle=false`` in one line."""


class ModuleWorkload(Workload):
    """Take the dataset and the training step from a Python module of your own; its code runs with your rights."""

    kind: Literal["module"] = "module"
    target: str = Field("", max_length=500)
    """``package.module:name`` of a function or class that makes the workload."""
    folder: str = Field("", max_length=4096)
    """Where Python looks for the module first; empty for the folder in which the lab was started."""
    preset: str | None = Field(None, min_length=1, max_length=200)
    """One of the module's own ``PRESETS``; `arguments` come on top of it."""
    arguments: Arguments = Field(default_factory=dict)
    """What it is called with: ``batch=64, shuffle=false``."""
    first_batch_s: float = Field(300.0, gt=0, le=86_400)
    """The job fails when its first batch takes longer, s."""

    is_code: ClassVar = True
    has_files: ClassVar = False
    decides: ClassVar = (
        "evaluate_every",
        "held_out_files",
        "keep_outputs_of_step",
        "precision",
        "xla",
        "accumulate",
        "replicas",
        "learning_rate",
    )

    def whole_source(self, ending: Sequence[str]) -> str:
        arguments = [f"**{self.module}.PRESETS[{quote(self.preset)}]"] if self.preset else []
        arguments += [f"{quote(name)}: {_literal(value)}" for name, value in self.arguments.items()]
        lines = [f"# Dataset and training step of {self.target}, as Pipeline Lab runs them."]
        if self.folder:
            lines += ["import sys", "", f"sys.path.insert(0, {quote(self.folder)})"]
        lines += ["", f"import {self.module}"]
        if len(ending) > 1:  # more than the return: tf.data.Options
            lines.append("import tensorflow as tf")
        lines += ["", f"ARGUMENTS = {{{', '.join(arguments)}}}"]
        lines += [f"WORKLOAD = {self.module}.{self.function}(**ARGUMENTS)", "", ""]
        lines += ['def make_dataset(files=(), cache_dir="cache"):', f"{INDENT}{_DOCSTRING}"]
        lines += [f"{INDENT}dataset = WORKLOAD.make_dataset()", *ending]
        return "\n".join(lines) + "\n"

    def check(self, pipeline: PipelineOptions) -> None:
        if not self.target:
            raise ValueError("workload.target is missing; write package.module:function")
        if pipeline.stages:
            raise ValueError("the stages of a module workload are those of its own dataset; remove pipeline.stages")

    @field_validator("target")
    @classmethod
    def _is_a_target(cls, target: str) -> str:
        if not _TARGET.fullmatch(target):
            raise ValueError(f"{target[:80]!r} names no code; write package.module:function")
        return target

    @property
    def module(self) -> str:
        return self.target.partition(":")[0]

    @property
    def function(self) -> str:
        return self.target.partition(":")[2]


_DOCSTRING = '"""Build the dataset; it decides itself which files it reads and where it caches."""'


def _literal(value: object) -> str:
    return quote(value) if isinstance(value, str) else repr(value)
