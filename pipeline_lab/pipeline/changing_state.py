"""What a pipeline's functions read that the script changes elsewhere, as a callback does between epochs: a cache would keep what came before.

Names are compared, not objects, so a change of something else of the same name counts, too.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import TypeAlias

from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.changes import KEEPING, Edit, Insert, MoveBefore, Split
from pipeline_lab.pipeline.recipe import DatasetCall, Recipe, UserFunction, is_installed
from pipeline_lab.pipeline.shared_state import CHANGING, INTO_FIRST, TAKING, Function, own_names

AnyFunction: TypeAlias = Function | ast.Lambda
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOP = (ast.For, ast.AsyncFor, ast.While)
_MAKING = frozenset({"__init__", "__new__", "__post_init__", "build"})
"""Methods that make an object, before anything reads it."""
_ASSIGNING = frozenset({"assign", "assign_add", "assign_sub"})
"""Methods that change a variable of TensorFlow's."""


_NEVER = 10**9
"""After the last line of any file."""


@dataclass(frozen=True)
class ChangedState:
    """What a function reads, and the line that changes it.

    Attributes:
        function: Name of the function that a dataset's call was given.
        name: Of a variable or an attribute.
        file, line: Where it is changed.
    """

    function: str
    name: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.function} reads {self.name}, which {PurePath(self.file).name}:{self.line} changes"


def find_changed_state(recipe: Recipe, edit: Edit, texts: Mapping[str, str]) -> ChangedState | None:
    """Return what the elements that an edit would keep depend on, and the script may change between epochs; None where nothing is found.

    Python reads whatever is there when it runs; functions of TensorFlow read variables.

    Args:
        recipe: Of the script.
        edit: Of its pipeline; one that keeps no elements depends on nothing.
        texts: The user's files.
    """
    if not isinstance(edit, (Insert, MoveBefore, Split)):
        return None
    method = "cache" if isinstance(edit, Split) else edit.method if isinstance(edit, Insert) else edit.then
    return _find_behind(recipe, edit.call, texts) if method in KEEPING else None


def _find_behind(recipe: Recipe, number: int, texts: Mapping[str, str]) -> ChangedState | None:
    own = [(path, text) for path, text in texts.items() if not is_installed(path)]
    script = _Script({path: tree for path, text in own if (tree := _parsed(text)) is not None}, recipe)
    for call in recipe.upstream(number):
        python = [part.function for part in call.python]
        for function in python or _given(call):
            if (found := script.changes(function, is_python=bool(python))) is not None:
                return found
    return None


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _given(call: DatasetCall) -> Iterator[UserFunction]:
    """Yield the functions that a call was given."""
    for value in call.arguments.values():
        if isinstance(value, dict) and value.get("file") and value.get("line"):
            yield UserFunction(value.get("function", ""), "", value["file"], value["line"], value.get("end_line", 0))


@dataclass(frozen=True, eq=False)
class _Scope:
    """A module or a function, without what is in the functions in it.

    Attributes:
        file: Its file.
        node: Of the tree.
        first, last: Its lines; a module has any.
        begins: The line from which on it may run between epochs: where it trains, its first training; of another module none.
        nodes: What is in it, each with the last line of the loop around it, or its own.
    """

    file: str
    node: ast.Module | AnyFunction
    first: int
    last: int
    begins: int
    nodes: tuple[tuple[ast.AST, int], ...]

    @property
    def name(self) -> str:
        return getattr(self.node, "name", "")

    def has(self, other: "_Scope") -> bool:
        """Say whether another scope is in this one."""
        return self.file == other.file and self.first <= other.first <= self.last

    @property
    def late(self) -> Iterator[ast.AST]:
        return (node for node, until in self.nodes if until >= self.begins)


class _Script:
    def __init__(self, trees: Mapping[str, ast.Module], recipe: Recipe) -> None:
        places = [use.place for use in recipe.uses if use.place is not None]
        self._scopes = [
            scope
            for file, tree in trees.items()
            for scope in _scopes(file, tree, [place.line for place in places if place.file == file])
        ]
        self._early = self._find_early()

    def _find_early(self) -> set[str]:
        """Return the names of functions that run before the training only: those that make objects, and what only these call."""
        early = set(_MAKING)
        functions = {scope.name for scope in self._scopes} - {""}
        mentions: dict[str, list[_Scope | None]] = {}
        """By name of a function, the scopes that name it; None where one does so before the training."""
        for scope in self._scopes:
            late = set(scope.late)
            for node, _ in scope.nodes:
                if (named := _name_of(node)) in functions:
                    mentions.setdefault(named, []).append(scope if node in late else None)
        while new := {
            name
            for name, where in mentions.items()
            if name not in early and all(scope is None or scope.name in early for scope in where)
        }:
            early |= new
        return early

    def changes(self, function: UserFunction, *, is_python: bool) -> ChangedState | None:
        """Return what a function reads and another one, or the script's own lines, change; as Python, or in TensorFlow's graph."""
        mine, read = self._closure(function)
        for scope in self._scopes:
            if scope in mine or scope.name in self._early:
                continue
            is_around = any(scope.has(each) for each in mine)  # its variables are theirs, too
            own = frozenset() if is_around or isinstance(scope.node, ast.Module) else own_names(scope.node)
            for node in scope.late:
                changed = _changed_by(
                    node, own, is_module=isinstance(scope.node, ast.Module), assigned_only=not is_python
                )
                if (name := next((each for each in changed if each in read), None)) is not None:
                    return ChangedState(function.name, name, scope.file, getattr(node, "lineno", 0))
        return None

    def _closure(self, function: UserFunction) -> tuple[set[_Scope], set[str]]:
        """Return a function with those in it and those that it names, and all names that these read."""
        begun = [
            scope
            for scope in self._scopes
            if scope.file == function.file
            and not isinstance(scope.node, ast.Module)
            and _first_line(scope.node) == function.line
        ]
        found, read, left = set(begun), set[str](), list(begun)
        while left:
            scope = left.pop()
            own = own_names(scope.node)
            inner = {node for node, _ in scope.nodes if isinstance(node, _FUNCTION)}
            names = {_name_of(node) for node, _ in scope.nodes if not (isinstance(node, ast.Name) and node.id in own)}
            read |= names - {""}
            new = [each for each in self._scopes if each.node in inner or (each.name and each.name in names)]
            left += [each for each in new if each not in found]
            found.update(new)
        return found, read


def _scopes(file: str, tree: ast.Module, trained: Iterable[int]) -> Iterator[_Scope]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, *_FUNCTION)):
            first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", None) or _NEVER
            lines = [line for line in trained if first <= line <= last]
            begins = min(lines, default=_NEVER if isinstance(node, ast.Module) else 0)
            yield _Scope(file, node, first, last, begins, _in_scope(node))


def _in_scope(scope: ast.AST) -> tuple[tuple[ast.AST, int], ...]:
    found = []
    left = [(child, 0) for child in ast.iter_child_nodes(scope)]
    while left:
        node, loop_ends = left.pop()
        found.append((node, loop_ends or getattr(node, "lineno", 0)))
        if not isinstance(node, _FUNCTION):
            ends = loop_ends or ((node.end_lineno or 0) if isinstance(node, _LOOP) else 0)
            left += [(child, ends) for child in ast.iter_child_nodes(node)]
    return tuple(found)


def _name_of(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _first_line(function: AnyFunction) -> int:
    decorators: list[ast.expr] = getattr(function, "decorator_list", [])
    return min([function.lineno, *(each.lineno for each in decorators)])


def _changed_by(node: ast.AST, own: frozenset[str], *, is_module: bool, assigned_only: bool) -> Iterator[str]:
    """Yield the names that a node changes beyond a function's own."""
    if isinstance(node, ast.Call):
        yield from _changed_by_call(node, own, assigned_only=assigned_only)
    if assigned_only:
        return
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        yield node.attr
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        yield from _last_name(node.value, own)
    elif isinstance(node, ast.Global):
        yield from node.names
    elif is_module and isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id


def _changed_by_call(call: ast.Call, own: frozenset[str], *, assigned_only: bool) -> Iterator[str]:
    method = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if method in _ASSIGNING or (not assigned_only and method in TAKING | CHANGING):
        yield from _last_name(call.func.value if isinstance(call.func, ast.Attribute) else call.func, own)
    if assigned_only or not call.args:
        return
    named = call.args[1] if method == "setattr" and len(call.args) > 1 else None
    if isinstance(named, ast.Constant) and isinstance(named.value, str):
        yield named.value
    elif method in INTO_FIRST:
        yield from _last_name(call.args[0], own)


def _last_name(node: ast.AST, own: frozenset[str]) -> Iterator[str]:
    """Yield the attribute, or the variable that is not a function's own, in which a value lies."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Name) and node.id not in own:
        yield node.id
