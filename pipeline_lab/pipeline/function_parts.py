"""The parts of a function of the user's: what it does before it draws at random, which is the same each time, and the rest.

Only what is known to give the same each time counts as such: TensorFlow's own operations, and functions of the same file that call
nothing else. The first statement that does something else begins the rest.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from textwrap import dedent

DRAWN = "{name}_drawn"
"""Name of the rest."""
_OTHER_EACH_TIME = re.compile(
    r"random|shuffle|dropout|distort|sampler|multinomial|categorical|normal$|py_func|numpy_function|print|timestamp|variable|assign"
    r"|keras|data$|summary|queue|eager",
    re.IGNORECASE,
)
"""Parts of names in TensorFlow that draw, keep a state, run Python or do what nobody knows."""
_OF_TENSORS = frozenset({"set_shape"})
"""Methods of tensors that a statement may call."""


@dataclass(frozen=True)
class FunctionParts:
    """A function in two.

    Attributes:
        name, rest_name: Of the function, which keeps its first part, and of a new one.
        after, line: Last line of the first part, and first line of the rest, from 1.
        between: What comes in the place of the lines between them.
        first, rest: Both as Python.
    """

    name: str
    rest_name: str
    after: int
    line: int
    between: str
    first: str
    rest: str


def split_function(text: str, name: str, line: int) -> FunctionParts | None:
    """Split a function before its first statement that may give something else each time.

    Args:
        text: Source of its file.
        name: Of the function, qualified or not.
        line: Where it begins.

    Returns:
        None where nothing comes before that, what is handed over cannot be elements of a dataset, or the function is named elsewhere
        than in one call.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    name = name.rpartition(".")[2]
    function = functions.get(name)
    if function is None or function.lineno != line or not _is_plain(function) or _count(tree, name) != 1:
        return None
    steady = _Steady(functions, frozenset(_names_of_tensorflow(tree)))
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    cut = next((place for place, each in enumerate(body) if not steady.is_kept(each)), len(body))
    kept, rest = body[:cut], body[cut:]
    if not all(any(isinstance(node, ast.Call) for each in part for node in ast.walk(each)) for part in (kept, rest)):
        return None
    handed = _handed(function, kept, rest)
    rest_name = DRAWN.format(name=name)
    is_told_apart = all(each.lineno > (before.end_lineno or 0) for before, each in pairwise(body))
    if not handed or not is_told_apart or re.search(rf"\b{rest_name}\b", text):
        return None
    return _write(text.splitlines(keepends=True), function, kept[-1], rest[0], handed, rest_name)


def _is_plain(function: ast.FunctionDef) -> bool:
    given = function.args
    is_called_plainly = not (given.posonlyargs or given.vararg or given.kwonlyargs or given.kwarg or given.defaults)
    others = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom)
    is_own = not given.args or given.args[0].arg not in ("self", "cls")
    is_only = not any(isinstance(node, others) for node in ast.walk(function))
    return is_called_plainly and is_own and is_only and not function.decorator_list


def _count(tree: ast.Module, name: str) -> int:
    return sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))


def _names_of_tensorflow(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.asname or each.name for each in node.names if each.name == "tensorflow")


@dataclass(frozen=True)
class _Steady:
    """Says what gives the same each time.

    Attributes:
        functions: Of the file.
        tensorflow: Names that TensorFlow has in it.
    """

    functions: Mapping[str, ast.FunctionDef]
    tensorflow: frozenset[str]

    def is_kept(self, statement: ast.stmt) -> bool:
        """Say whether a statement may belong to the first part."""
        if isinstance(statement, ast.Assign):
            targets = [each for target in statement.targets for each in _parts(target)]
        elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
            targets = [statement.target]
        elif isinstance(statement, ast.Expr):
            targets = []
        else:
            return False
        return all(isinstance(each, ast.Name) for each in targets) and self._gives_the_same(statement, frozenset())

    def _gives_the_same(self, node: ast.AST, around: frozenset[str]) -> bool:
        return all(self._is_known(each, around) for each in ast.walk(node) if isinstance(each, ast.Call))

    def _is_known(self, call: ast.Call, around: frozenset[str]) -> bool:
        names = ast.unparse(call.func).split(".")
        if names[0] in self.tensorflow and len(names) > 1:
            return not any(_OTHER_EACH_TIME.search(each) for each in names[1:])
        if len(names) > 1:
            return names[-1] in _OF_TENSORS
        function = self.functions.get(names[0])
        if function is None or names[0] in around or function.decorator_list:
            return False
        stores = (ast.Attribute, ast.Subscript)
        changes = (
            isinstance(each, (ast.Global, ast.Nonlocal))
            or (isinstance(each, stores) and isinstance(each.ctx, (ast.Store, ast.Del)))
            for each in ast.walk(function)
        )
        return not any(changes) and self._gives_the_same(function, around | {names[0]})


def _parts(target: ast.expr) -> list[ast.expr]:
    return target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _handed(function: ast.FunctionDef, kept: list[ast.stmt], rest: list[ast.stmt]) -> list[str]:
    """Return the names that the rest reads of what there is before it; none where one of them may be no tensor."""
    bound: dict[str, ast.AST | None] = {each.arg: None for each in function.args.args}
    for statement in kept:
        for node in ast.walk(statement):
            if (
                isinstance(node, ast.Name)
                and isinstance(node.ctx, ast.Store)
                and not isinstance(statement, ast.AugAssign)
            ):
                bound[node.id] = getattr(statement, "value", None)
    read = {node.id for each in rest for node in ast.walk(each) if isinstance(node, ast.Name)}
    handed = [name for name in bound if name in read]
    made = (bound[name] for name in handed)
    return [] if any(value is not None and not _may_be_tensor(value) for value in made) else handed


def _may_be_tensor(value: ast.AST) -> bool:
    if isinstance(value, ast.Call):
        return True
    if isinstance(value, (ast.BinOp, ast.UnaryOp)):
        return any(_may_be_tensor(each) or isinstance(each, ast.Name) for each in ast.iter_child_nodes(value))
    if isinstance(value, ast.Subscript):
        return isinstance(value.value, ast.Name) or _may_be_tensor(value.value)
    return False


def _write(
    lines: list[str], function: ast.FunctionDef, last: ast.stmt, first: ast.stmt, handed: list[str], rest_name: str
) -> FunctionParts:
    assert last.end_lineno is not None
    assert function.end_lineno is not None
    line = first.lineno
    while line - 2 >= last.end_lineno and lines[line - 2].lstrip().startswith("#"):
        line -= 1  # a comment goes with what it is about
    newline = "\r\n" if lines[0].endswith("\r\n") else "\n"
    inner, outer = " " * first.col_offset, " " * function.col_offset
    given = f"return {', '.join(handed)}" if len(handed) > 1 else f"return ({handed[0]},)"
    head = f"{outer}def {rest_name}({', '.join(handed)}):{newline}"
    end = f"{inner}{given}{newline}"
    apart = newline * (1 if function.col_offset else 2)
    return FunctionParts(
        function.name,
        rest_name,
        last.end_lineno,
        line,
        f"{end}{apart}{head}",
        dedent("".join(lines[function.lineno - 1 : last.end_lineno]) + end),
        dedent(head + "".join(lines[line - 1 : function.end_lineno])),
    )
