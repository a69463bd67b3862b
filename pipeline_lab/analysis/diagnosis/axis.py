"""How captures go onto one time axis: in the order of time where all say when they were made, else one after another."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

from pipeline_lab.data_classes import dataclass


class Capture(Protocol):
    """What places a capture on the axis: its names, its window on its own axis, and when that axis begins."""

    @property
    def name(self) -> str: ...
    @property
    def window(self) -> str: ...
    @property
    def origin_epoch_ns(self) -> int | None: ...
    @property
    def start_ns(self) -> int: ...
    @property
    def end_ns(self) -> int: ...


Placed = TypeVar("Placed", bound=Capture)


@dataclass(frozen=True)
class PlacedCapture(Generic[Placed]):
    """Where a capture lies: the number of its window, and what is added to its times."""

    capture: Placed
    window: int
    shift_ns: int


def place_captures(
    captures: Sequence[Placed], origin_epoch_ns: int | None = None, windows: Mapping[str, int] = MappingProxyType({})
) -> tuple[list[PlacedCapture[Placed]], int | None]:
    """Find where each capture lies on one axis, in the order of time, and the epoch of the axis' zero.

    Where all captures have absolute times, the axis is theirs; otherwise they are laid one after another.

    Args:
        captures: In any order.
        origin_epoch_ns: Zero of the axis; the earliest capture's origin if not given.
        windows: Numbers of earlier windows, which are on the axis already.
    """
    known = [one.origin_epoch_ns for one in captures if one.origin_epoch_ns is not None]
    is_absolute = len(known) == len(captures)
    zero = min(known, default=None) if origin_epoch_ns is None else origin_epoch_ns
    if not is_absolute or zero is None:
        in_a_row = sorted(captures, key=lambda one: (one.window, one.name))
        return _lay_in_a_row(in_a_row), zero if not captures else None
    ordered = sorted(captures, key=lambda one: ((one.origin_epoch_ns or 0) + one.start_ns, one.name))
    numbers = _number_windows(ordered, windows)
    places = zip(ordered, numbers, strict=True)
    return [PlacedCapture(one, number, (one.origin_epoch_ns or 0) - zero) for one, number in places], zero


def _lay_in_a_row(ordered: Sequence[Placed]) -> list[PlacedCapture[Placed]]:
    places, cursor = [], 0
    for one, number in zip(ordered, _number_windows(ordered, {}), strict=True):
        places.append(PlacedCapture(one, number, cursor - one.start_ns))
        cursor += one.end_ns - one.start_ns
    return places


def _number_windows(ordered: Sequence[Capture], known: Mapping[str, int]) -> list[int]:
    """Return the number of each capture's window: those that are not known go on behind the known ones."""
    new: dict[str, int] = {}
    return [
        known[key] if key in known else new.setdefault(key, len(known) + len(new)) for key in map(window_key, ordered)
    ]


def window_key(capture: Capture) -> str:
    """Return what the hosts of one window share; a lone file is a window of its own."""
    return capture.window or capture.name
