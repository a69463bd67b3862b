"""What a method of a class of the user's changes that outlives its call: threads that call it at once would share that."""

import ast
import re
from collections.abc import Iterator

from pipeline_lab.data_classes import dataclass

TAKING = frozenset({"pop", "popitem", "setdefault", "seek", "append", "extend"})
"""Methods that change what they are called on, whatever is done with their result."""
CHANGING = frozenset({"insert", "remove", "discard", "clear", "add", "update", "sort", "reverse", "fill", "resize"})
"""Methods that do so where nothing is done with their result; others of these names return something new."""
INTO_FIRST = frozenset({"shuffle", "copyto", "next", "setattr"})
"""Functions that change what they are given first."""
_LOCK = re.compile(r"(^|_)(r?lock|mutex|semaphore|condition)s?$", re.IGNORECASE)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Write:
    """A change of what outlives a call: ``self.count`` or a global's name, and its line."""

    name: str
    line: int


def find_writes(text: str, method: str, line: int) -> Iterator[Write]:
    """Yield what a method changes of its object or of globals, in itself or in the methods and functions of its file that it calls.

    What is changed while a lock is held is left out: who wrote that knows of threads.

    Args:
        text: Source of the file.
        method: Name of the method.
        line: One of its lines.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    found = (
        (kind, each) for kind in classes for each in kind.body if isinstance(each, Function) and each.name == method
    )
    kind, function = next(((one, each) for one, each in found if _has_line(each, line)), (None, None))
    if kind is None or function is None:
        return
    bases = _methods(classes, kind, bases_only=True)
    called = _Calls(_methods(classes, kind) | {method: function}, bases, _functions(tree))
    modules = {alias.asname or alias.name.partition(".")[0] for alias in ast.walk(tree) if isinstance(alias, ast.alias)}
    waiting, seen = [(function, True)], {function}
    while waiting:
        current, is_method = waiting.pop()
        scope = _Scope(current, is_method, modules)
        for node in _without_locked(current):
            if (write := scope.write(node)) is not None:
                yield write
            following = called.of(node, scope)
            if following is not None and following[0] not in seen:
                seen.add(following[0])
                waiting.append(following)


def _has_line(function: Function, line: int) -> bool:
    first = min([function.lineno, *(each.lineno for each in function.decorator_list)])
    return first <= line <= (function.end_lineno or 0)


def _functions(tree: ast.Module) -> dict[str, Function]:
    return {each.name: each for each in tree.body if isinstance(each, Function)}


def _methods(classes: list[ast.ClassDef], kind: ast.ClassDef, *, bases_only: bool = False) -> dict[str, Function]:
    """Return the methods of a class and of its bases in the same file."""
    found: dict[str, Function] = {}
    others = [each for each in classes if each is not kind]
    for base in reversed(kind.bases):
        known = next((each for each in others if isinstance(base, ast.Name) and each.name == base.id), None)
        found |= {} if known is None else _methods(others, known)
    own = {} if bases_only else {each.name: each for each in kind.body if isinstance(each, Function)}
    return found | own


@dataclass(frozen=True)
class _Calls:
    """Finds the functions of the file that are called.

    Attributes:
        methods, of_bases: Of the object, and as ``super()`` has them.
        functions: Of the module.
    """

    methods: dict[str, Function]
    of_bases: dict[str, Function]
    functions: dict[str, Function]

    def of(self, node: ast.AST, scope: "_Scope") -> tuple[Function, bool] | None:
        """Return a function that a node calls, or reads as a property, and whether it is a method of the object."""
        if isinstance(node, ast.Attribute):
            known = self.of_bases if _is_super(node.value) else self.methods if scope.is_me(node.value) else {}
            return (known[node.attr], True) if node.attr in known else None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self.functions:
            return self.functions[node.func.id], False
        return None


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def own_names(function: ast.AST) -> frozenset[str]:
    """Return the parameters and variables of a function and of those in it, but for what they share with others."""
    nodes = list(ast.walk(function))
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    shared = {name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    return frozenset((stored | {node.arg for node in nodes if isinstance(node, ast.arg)}) - shared)


class _Scope:
    """What is a function's own.

    Args:
        function: The function.
        is_method: Its first parameter is the object.
        modules: Names that are imported: their functions are not methods that change something.
    """

    def __init__(self, function: Function, is_method: bool, modules: set[str]) -> None:
        given = function.args
        parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        names = [each.arg for each in parameters if each is not None]
        self._me = names[0] if is_method and names else ""
        self._own = (own_names(function) | modules) - {self._me}

    def is_me(self, node: ast.AST) -> bool:
        """Say whether an expression is the object or its class."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type" and node.args:
            node = node.args[0]
        return isinstance(node, ast.Name) and node.id == self._me

    def write(self, node: ast.AST) -> Write | None:
        if isinstance(node, ast.Global):
            return Write(node.names[0], node.lineno)
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            return self._shared(node if isinstance(node, ast.Attribute) else node.value, node.lineno)
        is_statement = isinstance(node, ast.Expr)
        call = node.value if isinstance(node, ast.Expr) else node
        if not isinstance(call, ast.Call):
            return None
        changed: list[ast.expr] = [each.value for each in call.keywords if each.arg == "out"]
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if isinstance(call.func, ast.Attribute) and (name in TAKING or (name in CHANGING and is_statement)):
            changed.append(call.func.value)
        changed += call.args[:1] if name in INTO_FIRST else []
        return next((found for each in changed if (found := self._shared(each, call.lineno)) is not None), None)

    def _shared(self, node: ast.expr, line: int) -> Write | None:
        """Return what an expression is, or is a part of, that is not the function's own."""
        inner: ast.AST = node
        while isinstance(inner, (ast.Attribute, ast.Subscript)):
            if isinstance(inner, ast.Attribute) and self.is_me(inner.value):
                return Write(f"{self._me}.{inner.attr}", line)
            inner = inner.value
        if self.is_me(inner):
            return Write(self._me, line)
        is_global = isinstance(inner, ast.Name) and inner.id not in self._own
        return Write(inner.id, line) if is_global and isinstance(inner, ast.Name) else None


def _without_locked(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.With) and any(_is_lock(each.context_expr) for each in child.items)):
            yield child
            yield from _without_locked(child)


def _is_lock(node: ast.expr) -> bool:
    inner = node.func if isinstance(node, ast.Call) else node
    return bool(_LOCK.search(inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", "")))
