"""Functions of the user's that put the values of one example together: along the last axis they do the same for a whole batch.

A CSV line, say, is parsed into a scalar for each column, and ``tf.stack(columns)`` makes the example. Of a batch of lines each
column is a vector, and ``tf.stack(columns, axis=-1)`` makes the batch; of scalars the last axis is the first one, so that the function
still treats single examples as before.
"""

import ast
import re
from collections.abc import Iterator, Set

from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.function_parts import count_bindings


@dataclass(frozen=True)
class StackedFunction:
    """A function and its calls of ``tf.stack`` along the first axis.

    Attributes:
        file: That defines it.
        name: Of the function.
        line: Where it begins, or its first decorator.
        calls: Where each call is: first line, column, last line, end, lines from 1 and columns in bytes, as of Python's ``ast``.
    """

    file: str
    name: str
    line: int
    calls: tuple[tuple[int, int, int, int], ...]


def find_stacked(text: str, file: str, name: str, line: int) -> StackedFunction | None:
    """Find what a function stacks along the first axis.

    Args:
        text: Source of its file.
        file: Its path.
        name: Of the function, qualified or not.
        line: Where it begins, or its first decorator.

    Returns:
        None where it stacks nothing so, is not found, or may be given anything else than the elements of one map and constants.
    """
    name = name.rpartition(".")[2]
    try:
        tree = ast.parse(re.sub(r"\r\n?", "\n", text))
    except (SyntaxError, ValueError):
        return None
    bound = count_bindings(tree)
    imports = (node for node in tree.body if isinstance(node, ast.Import))
    names = [each.asname or each.name for node in imports for each in node.names if each.name == "tensorflow"]
    named = {each for each in names if bound[each] == 1}
    if bound[name] != 1 or not _is_called_with_constants(tree, name):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name and line in (node.lineno, _first_line(node)):
            calls = [
                (each.lineno, each.col_offset, each.end_lineno or each.lineno, each.end_col_offset or 0)
                for each in find_stacks(node, named)
            ]
            return StackedFunction(file, name, line, tuple(calls)) if calls else None
    return None


def _is_called_with_constants(tree: ast.Module, name: str) -> bool:
    """Say whether a function is named once, but for calls that give it constants, such as to try it."""
    tried = [
        node.func
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and all(isinstance(each, ast.Constant) for each in node.args)
        and not node.keywords
    ]
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name and node not in tried]
    return len(named) == 1


def find_stacks(function: ast.AST, tensorflow: Set[str]) -> Iterator[ast.Call]:
    """Yield the calls of ``tf.stack`` in a function that stack along the first axis.

    Args:
        function: Parsed.
        tensorflow: Names that TensorFlow has there.
    """
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "stack":
            is_first = len(node.args) == 1 and not any(each.arg in ("axis", None) for each in node.keywords)
            if is_first and isinstance(node.func.value, ast.Name) and node.func.value.id in tensorflow:
                yield node


def _first_line(function: ast.FunctionDef) -> int:
    return min([function.lineno, *(each.lineno for each in function.decorator_list)])
