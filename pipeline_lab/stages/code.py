"""Small pieces of Python source: what a workload adds to the module, and calls written the way people write them."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pipeline_lab.data_classes import dataclass

LINE_LENGTH = 100
INDENT = "    "


@dataclass(frozen=True)
class Code:
    """What a part of the pipeline needs beside its line in ``make_dataset``.

    Attributes:
        imports: Import statements, whole lines.
        constants: Assignments, one per line.
        functions: Whole functions, each without blank lines around it.
    """

    imports: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()

    def __add__(self, other: "Code") -> "Code":
        return Code(self.imports + other.imports, self.constants + other.constants, self.functions + other.functions)


def wanted(choices: Mapping[str, object]) -> tuple[str, ...]:
    """Return the texts whose condition holds."""
    return tuple(text for text, condition in choices.items() if condition)


def parallel_arguments(
    num_parallel_calls: int | Literal["autotune"] | None, deterministic: bool | None = None
) -> list[str]:
    """Write the keyword arguments of a parallel stage; a serial one has none, and keeps its order anyway."""
    if num_parallel_calls is None:
        return []
    arguments = [f"num_parallel_calls={number_or_autotune(num_parallel_calls)}"]
    return arguments if deterministic is None else [*arguments, f"deterministic={deterministic}"]


def number_or_autotune(value: int | Literal["autotune"]) -> str:
    return "tf.data.AUTOTUNE" if value == "autotune" else str(value)


def quote(text: str) -> str:
    """Write a string the user typed as a Python literal, in double quotes where no escape is needed for it."""
    literal = repr(text)
    return literal if '"' in literal else f'"{literal[1:-1]}"'


def assign_call(function: str, arguments: Sequence[str], comment: str = "") -> str:
    """Write ``dataset = function(arguments)`` inside a function, one argument per line where one line is too short."""
    note = f"  # {comment}" if comment else ""
    line = f"{INDENT}dataset = {function}({', '.join(arguments)}){note}"
    if len(line) <= LINE_LENGTH:
        return line
    inner = "".join(f"{INDENT * 2}{argument},\n" for argument in arguments)
    return f"{INDENT}dataset = {function}({note}\n{inner}{INDENT})"
