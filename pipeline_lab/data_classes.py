"""Dataclasses whose methods are made when they are first used.

The standard library writes and compiles five to seven methods for each class as its module is loaded: in Python 3.11 that was
0.3 of the 0.95 s that `analyze` took for a sample, most of it for classes without an instance. Methods that can be shared are
shared by all classes, and ``__init__`` is compiled for the first instance. Fields are those of the standard library, and so are
``replace``, ``asdict`` and ``fields``. ``InitVar``, slots and order are not supported, nor a field called ``self``.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import cache
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

Class = TypeVar("Class", bound=type[Any])


def _dataclass(
    cls: type[Any] | None = None,
    /,
    *,
    frozen: bool = False,
    eq: bool = True,
    repr: bool = True,  # noqa: A002 (as the standard library calls it)
    kw_only: bool = False,
) -> Any:
    """Make a class a dataclass, as :func:`dataclasses.dataclass` does with the same arguments."""

    def decorate(cls: Class) -> Class:
        cls.__doc__ = cls.__doc__ or cls.__name__  # otherwise its signature would be written there
        dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
        methods: dict[str, Any] = {"__init__": _make_at_first_call(cls, frozen)}
        if "__init__" not in vars(cls):
            methods["__signature__"] = _Signature(cls, frozen)
        if repr:
            methods["__repr__"] = _represent
        if eq:
            methods |= {"__eq__": _equals, "__hash__": _hash if frozen else None}
        if frozen:
            methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
        own = {name for name, value in vars(cls).items() if name != "__hash__" or value is not None}
        for name, method in methods.items():
            if name not in own:
                setattr(cls, name, method)
        return cls

    return decorate if cls is None else decorate(cls)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass


def _make_at_first_call(cls: type[Any], frozen: bool) -> Callable[..., None]:
    def __init__(self: Any, *arguments: Any, **named: Any) -> None:  # noqa: N807
        cls.__init__ = made = _make_init(cls, frozen)
        made(self, *arguments, **named)

    return __init__


_NOT_GIVEN = object()
_PUT = object.__setattr__


def _make_init(cls: type[Any], frozen: bool) -> Callable[..., None]:
    """Write and compile the ``__init__`` of a dataclass."""
    all_fields = [field for field in dataclasses.fields(cls) if field.init or field.default_factory is not MISSING]
    scope: dict[str, Any] = {"__name__": cls.__module__, "_NOT_GIVEN": _NOT_GIVEN, "_PUT": _PUT}
    taken: dict[bool, list[str]] = {False: ["self"], True: ["*"]}
    lines = []
    for number, field in enumerate(all_fields):
        value = field.name
        if field.default_factory is not MISSING:
            scope[f"_make{number}"] = field.default_factory
            value = f"_make{number}() if {value} is _NOT_GIVEN else {value}" if field.init else f"_make{number}()"
        if field.init:
            scope[f"_default{number}"] = _NOT_GIVEN if field.default is MISSING else field.default
            default = "" if _is_required(field) else f"=_default{number}"
            taken[bool(field.kw_only)].append(f"{field.name}{default}")
        lines.append(f"_PUT(self, {field.name!r}, {value})" if frozen else f"self.{field.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    arguments = taken[False] + (taken[True] if len(taken[True]) > 1 else [])
    exec("\n ".join([f"def __init__({', '.join(arguments)}):", *(lines or ["pass"])]), scope)  # noqa: S102 (names of fields)
    made: Callable[..., None] = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {field.name: field.type for field in all_fields if field.init} | {"return": None}
    return made


def _is_required(field: "Field[Any]") -> bool:
    return field.default is MISSING and field.default_factory is MISSING


class _Signature:
    """What ``inspect.signature`` and tools that complete code are told of a class."""

    def __init__(self, cls: type[Any], frozen: bool) -> None:
        self.cls = cls
        self.frozen = frozen

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        if instance is not None:
            raise AttributeError("__signature__")
        if owner is not self.cls and owner.__init__ is not self.cls.__init__:
            return None
        import inspect

        told = inspect.signature(_make_init(self.cls, self.frozen))
        return told.replace(parameters=list(told.parameters.values())[1:])


@recursive_repr()
def _represent(self: Any) -> str:
    told = [f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr]
    return f"{type(self).__qualname__}({', '.join(told)})"


def _equals(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    names = _compared(self.__class__)
    return [getattr(self, name) for name in names] == [getattr(other, name) for name in names]


def _hash(self: Any) -> int:
    return hash(tuple([getattr(self, name) for name in _hashed(self.__class__)]))


@cache
def _compared(cls: type[Any]) -> list[str]:
    return [field.name for field in dataclasses.fields(cls) if field.compare]


@cache
def _hashed(cls: type[Any]) -> list[str]:
    used = [field for field in dataclasses.fields(cls) if (field.compare if field.hash is None else field.hash)]
    return [field.name for field in used]


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_to_delete(self: Any, name: str) -> None:
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_frozen(self: Any, name: str) -> bool:
    """Say whether an attribute must not change: any one of a decorated class, of others only the fields."""
    return "__dataclass_fields__" in vars(type(self)) or name in self.__dataclass_fields__
