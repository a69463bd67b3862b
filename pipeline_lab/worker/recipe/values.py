"""Arguments of a call as plain data: values where they are plain, else what they are called and how large they are."""

import functools
import inspect
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, GeneratorType, MethodType
from typing import Any

from pipeline_lab.pipeline.recipe import UserFunction
from pipeline_lab.worker.recipe.places import before_rewriting, end_of

_FACTORIES = ("outer_factory", "inner_factory")
"""Functions that AutoGraph writes around the user's own."""
MAX_ITEMS, MAX_DEPTH, MAX_LETTERS = 10, 4, 200


def as_plain(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON can hold it; nothing of the value itself is kept."""
    if value is None or isinstance(value, (bool, int, float)):
        return value if not isinstance(value, float) or (value == value and abs(value) != float("inf")) else str(value)
    if isinstance(value, str):
        return value[:MAX_LETTERS]
    if isinstance(value, bytes):
        return value[:MAX_LETTERS].decode(errors="replace")
    if depth >= MAX_DEPTH:
        return _named(value)
    if isinstance(value, Mapping):
        return {str(name): as_plain(each, depth + 1) for name, each in list(value.items())[:MAX_ITEMS]}
    if isinstance(value, (list, tuple)):
        found = [as_plain(each, depth + 1) for each in value[:MAX_ITEMS]]
        return found if len(value) <= MAX_ITEMS else {"list": len(value), "first": found}
    return _described(value)


def _described(value: Any) -> Any:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if type(value).__module__ == "numpy" and shape == () and hasattr(value, "item"):
        return as_plain(value.item(), MAX_DEPTH)
    if shape is not None and dtype is not None:
        return {"array": _sizes(shape), "dtype": getattr(dtype, "name", None) or str(dtype)}
    if (function := function_of(value)) is not None:
        return {"function": function.name, "file": function.file, "line": function.line, "end_line": function.end_line}
    if type(value).__name__ == "DType":
        return f"tf.{value.name}"
    return _named(value)


def _sizes(shape: Any) -> list[int | None] | None:
    try:
        return [None if size is None else int(size) for size in shape]
    except (TypeError, ValueError):  # a shape of unknown rank
        return None


def _named(value: Any) -> dict[str, str]:
    kind = type(value)
    return {"object": f"{kind.__module__}.{kind.__qualname__}"}


def function_of(value: Any) -> UserFunction | None:
    """Describe a function, or what a callable object runs; None for what cannot be called.

    Args:
        value: Functions around the user's own (partials, ``tf.function``, decorators) are looked through.
    """
    for _ in range(MAX_ITEMS):
        inner = _inner(value)
        if inner is None:
            break
        value = inner
    if isinstance(value, GeneratorType):
        return _of_code(value.gi_code, value.__qualname__, "")
    code = getattr(value, "__code__", None)
    if isinstance(code, CodeType):
        return _of_code(code, value.__qualname__, str(value.__module__ or ""))
    if isinstance(value, type):
        return UserFunction(value.__qualname__, value.__module__)
    if not callable(value):
        return None
    return method_of(value, "call") or method_of(value, "__call__") or UserFunction(type(value).__qualname__)


def method_of(owner: Any, name: str) -> UserFunction | None:
    """Describe a method of an object by the class that defines it; None where it is not written in Python."""
    given = getattr(type(owner), name, None)
    method = None if given is None else inspect.unwrap(given)
    if not isinstance(method, FunctionType):
        return None
    return _of_code(method.__code__, f"{type(owner).__qualname__}.{name}", type(owner).__module__)


def _inner(value: Any) -> Any:
    if isinstance(value, functools.partial):
        return value.func
    if isinstance(value, MethodType):
        return value.__func__
    return getattr(value, "python_function", None) or getattr(value, "__wrapped__", None)


def _of_code(code: CodeType, name: str, module: str) -> UserFunction:
    if (origin := before_rewriting(code)) is not None:
        parts = [part.removeprefix("tf__") for part in name.split(".<locals>.")]
        name = ".<locals>.".join(part for part in parts if part not in _FACTORIES)
        return UserFunction(name, module, *origin)
    return UserFunction(name, module, code.co_filename, code.co_firstlineno, end_of(code))


_CALLING = frozenset(
    {"If", "While", "Case", "PartitionedCall", "StatefulPartitionedCall", "SymbolicGradient", "Placeholder"}
)
_READING = ("LookupTable", "HashTable", "MutableHashTable", "VarHandleOp", "ReadVariableOp", "VariableV2", "ReadFile", "Assert", "MatchingFiles")  # fmt: skip


def stateful_operations(dataset: Any) -> tuple[str, ...]:
    """Return the kinds of operations in a dataset's functions that are random or keep a state, seeded ones marked.

    Operations that only read, and datasets, which TensorFlow calls stateful so that they are not folded, are left out.
    """
    found: dict[str, None] = {}
    for wrapper in dataset._functions():
        for operation in _operations(wrapper.function.graph):
            kind = operation.type
            is_read = kind in _CALLING or "Dataset" in kind or (kind.startswith(_READING) and "Insert" not in kind)
            if operation._is_stateful and not is_read:
                found[f"{kind} (seeded)" if _is_seeded(operation) else kind] = None
    return tuple(found)


_STATE = ("LookupTable", "HashTable", "MutableHashTable", "ReadVariableOp", "VariableV2")


def reads_state(dataset: Any) -> bool:
    """Say whether a function of a dataset, or of those that it is made of, reads a variable or a table."""
    functions = (wrapper.function.graph for wrapper in dataset._functions())
    is_read = any(each.type.startswith(_STATE) for graph in functions for each in _operations(graph))
    return is_read or any(map(reads_state, dataset._inputs()))


def _operations(graph: Any) -> Iterator[Any]:
    """Yield the operations of a graph and of the functions that it calls."""
    left, seen = [graph], set()
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield from one.get_operations()
        left += [getattr(function, "graph", None) for function in getattr(one, "_functions", {}).values()]


def _is_seeded(operation: Any) -> bool:
    given = operation.node_def.attr
    return any(name in given and given[name].i for name in ("seed", "seed2"))
