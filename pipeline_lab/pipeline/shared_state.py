"""What a method of a class of the user's changes of its object: threads that call it at once would share that."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_CHANGING = frozenset(
    [
        "append",
        "extend",
        "insert",
        "pop",
        "popitem",
        "remove",
        "discard",
        "clear",
        "add",
        "update",
        "setdefault",
        "sort",
        "reverse",
        "fill",
        "resize",
    ]
)
"""Methods by which lists, sets, dicts and arrays change."""


@dataclass(frozen=True)
class Write:
    """A change of what outlives a call: ``self.count`` or a global's name, and its line."""

    name: str
    line: int


def find_writes(text: str, owner: str, method: str) -> Iterator[Write]:
    """Yield what a method changes of its object or of globals, in itself or in the methods that it calls on the same object.

    What is changed while a lock is held is left out: who wrote that knows of threads.

    Args:
        text: Source of the file.
        owner: Name of the class.
        method: Name of the method.
    """
    classes = {node.name: node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)}
    methods = _methods(classes, owner)
    waiting, seen = [method], {method}
    while waiting:
        function = methods.get(waiting.pop())
        if function is None or not function.args.args:
            continue
        me = function.args.args[0].arg
        for node in _without_locked(function):
            if (found := _write(node, me)) is not None:
                yield found
            called = _attribute_of(node, me)
            if called in methods and called not in seen:
                seen.add(called)
                waiting.append(called)


def _methods(classes: dict[str, ast.ClassDef], owner: str) -> dict[str, ast.FunctionDef]:
    """Return the methods of a class and of its bases in the same file."""
    kind, found = classes.get(owner), dict[str, ast.FunctionDef]()
    if kind is None:
        return found
    for base in reversed(kind.bases):
        if isinstance(base, ast.Name) and base.id != owner:
            found |= _methods({name: each for name, each in classes.items() if name != owner}, base.id)
    return found | {each.name: each for each in kind.body if isinstance(each, ast.FunctionDef)}


def _without_locked(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        holds = isinstance(child, ast.With) and any("lock" in ast.unparse(each).lower() for each in child.items)
        if not holds:
            yield child
            yield from _without_locked(child)


def _write(node: ast.AST, me: str) -> Write | None:
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return Write(node.names[0], node.lineno)
    if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
        return _named(node, me)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    changed = [node.func.value] if node.func.attr in _CHANGING else []
    changed += node.args[:1] if node.func.attr == "shuffle" else []
    changed += [each.value for each in node.keywords if each.arg == "out"]
    return next((found for each in changed if (found := _named(each, me)) is not None), None)


def _named(node: ast.expr, me: str) -> Write | None:
    """Return what of the object an expression is, or is a part of."""
    inner = node
    while isinstance(inner, (ast.Attribute, ast.Subscript)):
        if (name := _attribute_of(inner, me)) is not None:
            return Write(f"{me}.{name}", node.lineno)
        inner = inner.value
    return None


def _attribute_of(node: ast.AST, me: str) -> str | None:
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == me
    return node.attr if is_own and isinstance(node, ast.Attribute) else None
