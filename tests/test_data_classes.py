"""Dataclasses whose methods are made later behave as those of the standard library."""

import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import pytest

from pipeline_lab import data_classes

DECORATORS = {"standard": dataclass, "ours": data_classes._dataclass}


def make(decorator: Any) -> dict[str, type[Any]]:
    """Define the same classes with one of the decorators."""

    @decorator(frozen=True)
    class Point:
        x: int
        y: int = 2
        tags: list[str] = field(default_factory=list, compare=False)
        hidden: str = field(default="h", repr=False)
        kind: ClassVar[str] = "point"

        @cached_property
        def length(self) -> int:
            return self.x + self.y

    @decorator(frozen=True)
    class Solid(Point):
        z: int = 3

    @decorator(frozen=True, kw_only=True)
    class Named:
        name: str
        parts: tuple[int, ...] = ()
        made: list[int] = field(default_factory=list, init=False, hash=False)

    @decorator
    class Counter:
        at: int = 0
        _seen: int = field(default=0, compare=False)

        def __post_init__(self) -> None:
            self.at += 1

    @decorator(frozen=True, eq=False, repr=False)
    class Table:
        rows: Any

        def __repr__(self) -> str:
            return "a table"

    @decorator(frozen=True)
    class Own:
        value: float

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __hash__(self) -> int:
            return 7

    @decorator(frozen=True)
    class Nothing:
        pass

    return {made.__name__: made for made in (Point, Solid, Named, Counter, Table, Own, Nothing)}


CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Point", (1,), {}),
    ("Point", (1, 5, ["a"]), {"hidden": "z"}),
    ("Solid", (1, 2), {"z": 9}),
    ("Named", (), {"name": "n"}),
    ("Named", (), {"name": "n", "parts": (1, 2)}),
    ("Counter", (), {}),
    ("Counter", (4, 5), {}),
    ("Table", ([1],), {}),
    ("Own", (1.5,), {}),
    ("Nothing", (), {}),
]


@pytest.mark.parametrize(("name", "arguments", "named"), CALLS)
def test_instances_are_those_of_the_standard_library(
    name: str, arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    standard, ours = (make(decorator)[name] for decorator in DECORATORS.values())
    expected, one, other = standard(*arguments, **named), ours(*arguments, **named), ours(*arguments, **named)

    assert repr(one) == repr(expected)
    assert vars(one) == vars(expected)
    assert asdict(one) == asdict(expected)
    assert (one == other) == (expected == standard(*arguments, **named))
    assert one != expected
    assert (ours.__hash__ is None) == (standard.__hash__ is None)
    if ours.__hash__ is not None and ours.__eq__ is not object.__eq__:
        assert hash(one) == hash(expected) == hash(other)


@pytest.mark.parametrize("name", make(dataclass))
def test_the_signature_is_that_of_the_standard_library_before_and_after_the_first_instance(name: str) -> None:
    standard, ours = (make(decorator)[name] for decorator in DECORATORS.values())
    expected = str(inspect.signature(standard)).replace("<factory>", "…")
    for _ in range(2):
        told = str(inspect.signature(ours))
        assert [part.split("=")[0] for part in told.split(", ")] == [
            part.split("=")[0] for part in expected.split(", ")
        ]
        ours(*[1] * (name in ("Point", "Solid", "Table", "Own")), **({"name": "n"} if name == "Named" else {}))


def test_init_is_made_for_the_first_instance_only() -> None:
    point = make(data_classes._dataclass)["Point"]
    later = point.__init__
    point(1)
    made = point.__init__
    point(2)
    assert later is not made
    assert point.__init__ is made


@pytest.mark.parametrize("decorator", DECORATORS.values(), ids=DECORATORS)
def test_frozen_instances_refuse_changes_and_keep_what_is_cached(decorator: Any) -> None:
    point = make(decorator)["Point"](1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 3
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    assert point.length == 3
    assert replace(point, x=5).length == 7


@pytest.mark.parametrize("decorator", DECORATORS.values(), ids=DECORATORS)
@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((), {}, r"Point.__init__\(\) missing 1 required positional argument: 'x'"),
        ((1,), {"w": 2}, r"Point.__init__\(\) got an unexpected keyword argument 'w'"),
        ((1, 2, [], "h", 5), {}, r"Point.__init__\(\) takes from 2 to 5 positional arguments but 6 were given"),
    ],
)
def test_wrong_arguments_are_named_with_the_class(
    decorator: Any, arguments: tuple[Any, ...], named: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        make(decorator)["Point"](*arguments, **named)


def test_each_instance_has_a_list_of_its_own() -> None:
    point = make(data_classes._dataclass)["Point"]
    first, second = point(1), point(1)
    first.tags.append("a")
    assert second.tags == []


@data_classes.dataclass(frozen=True)
class Kept:
    name: str
    inner: "Kept | None" = None


def test_instances_can_be_pickled() -> None:
    kept = Kept("a", Kept("b"))
    assert pickle.loads(pickle.dumps(kept)) == kept


def test_an_instance_that_holds_itself_can_be_shown() -> None:
    kept = Kept("a")
    object.__setattr__(kept, "inner", kept)
    assert repr(kept) == "Kept(name='a', inner=...)"


def test_a_class_that_inherits_without_being_decorated_has_a_signature_of_its_own() -> None:
    class Special(Kept):
        def __init__(self) -> None:
            super().__init__("special")

    assert str(inspect.signature(Special)) in ("()", "() -> None")
    assert Special().name == "special"
    assert dataclasses.fields(Special) == dataclasses.fields(Kept)


@pytest.mark.parametrize("decorator", DECORATORS.values(), ids=DECORATORS)
def test_a_class_without_the_decorator_may_have_attributes_of_its_own(decorator: Any) -> None:
    kind: Any = type("Marked", (make(decorator)["Point"],), {})
    marked = kind(1)
    marked.note = "mine"
    assert marked.note == "mine"
    del marked.note
    with pytest.raises(FrozenInstanceError):
        marked.x = 2
    assert list(inspect.signature(kind).parameters) == ["x", "y", "tags", "hidden"]
