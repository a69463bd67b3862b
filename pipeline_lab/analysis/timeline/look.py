"""Find single events of a timeline, and say which operations a stretch of time went into."""

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.intervals import IntArray, clip, length_within
from pipeline_lab.analysis.timeline.index import Group, Index
from pipeline_lab.analysis.timeline.lanes import LaneKind
from pipeline_lab.data_classes import dataclass

MAX_EVENTS = 400_000
"""Events of one stretch of time that are looked at to rank its operations."""
MAX_NAMES = 200
_PICK = re.compile(r"(?P<kind>[a-z]+)@(?P<start>-?\d{1,18})|(?P<lane>\d{1,9})\.(?P<layer>\d{1,9})@(?P<at>-?\d{1,18})")
_KINDS = {"gap": LaneKind.DEVICE, "wait": LaneKind.WAITS, "step": LaneKind.STEPS, "window": LaneKind.WINDOWS}


@dataclass(frozen=True)
class FoundEvent:
    """One event.

    Attributes:
        lane, layer: Where it lies.
        event_class: Index into the classes.
        name: Number of its name.
        start_ns, duration_ns: On the diagnosis' axis.
    """

    lane: int
    layer: int
    event_class: int
    name: int
    start_ns: int
    duration_ns: int

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.duration_ns


@dataclass(frozen=True)
class NameTime:
    """Time that events of one name took for themselves, without what they called.

    Attributes:
        name: Number of the name.
        lane: The thread with most of it.
        self_ns: Over all threads; more than the stretch where several worked at once.
        calls: Number of events.
    """

    name: int
    lane: int
    self_ns: int
    calls: int


def pick(index: Index, text: str) -> FoundEvent | None:
    """Return the event that a link names, or None.

    Args:
        index: The timeline.
        text: ``gap@START``, ``wait@START``, ``step@START`` or ``LANE.LAYER@START``, START in ns on the run's axis.
    """
    match = _PICK.fullmatch(text)
    if match is None:
        return None
    if match["kind"] is None:
        return at(index, (int(match["lane"]), int(match["layer"])), int(match["at"]), 0)
    start = int(match["start"])
    for lane in index.lanes_of(_KINDS[match["kind"]]) if match["kind"] in _KINDS else ():
        for layer, _ in index.of_lane(lane):
            found = at(index, (lane, layer), start, 0)
            if found is not None and found.start_ns == start:
                return found
    return None


def at(index: Index, place: tuple[int, int], time_ns: int, tolerance_ns: int) -> FoundEvent | None:
    """Return the longest event of a row within ``tolerance_ns`` of a moment; None if there is none."""
    best: FoundEvent | None = None
    for group in index.at(*place):
        first, last = group.rows(time_ns - tolerance_ns, time_ns + tolerance_ns)
        if last > first:
            lengths = group.duration_ns(first, last)
            row = first + int(lengths.argmax())
            found = _found(group, row)
            if best is None or found.duration_ns > best.duration_ns:
                best = found
    return best


def search(index: Index, words: str) -> list[int]:
    """Return the numbers of the names that hold all words, those with most time first, at most :data:`MAX_NAMES`."""
    parts = words.casefold().split()
    if not parts:
        return []
    found = [
        number
        for number, name in enumerate(index.names)
        if index.counts[number] and all(part in name.casefold() for part in parts)
    ]
    return sorted(found, key=lambda number: -index.totals_ns[number])[:MAX_NAMES]


def next_named(index: Index, names: list[int], after_ns: int, *, backwards: bool = False) -> FoundEvent | None:
    """Return the next event of one of these names that starts after a moment, or the last one before it."""
    wanted = np.zeros(max(1, len(index.names)), np.bool_)
    wanted[names] = True
    best: FoundEvent | None = None
    for lane in index.lanes_of(LaneKind.STREAM, LaneKind.THREAD):
        for _, groups in index.of_lane(lane):
            for group in groups:
                found = _nearest(group, wanted, after_ns, backwards)
                if found is not None and (best is None or (found.start_ns > best.start_ns) == backwards):
                    best = found
    return best


def neighbor(index: Index, place: tuple[int, int], time_ns: int, *, backwards: bool = False) -> FoundEvent | None:
    """Return the first event of a row that starts after a moment, or the last one that starts before it."""
    best: FoundEvent | None = None
    for group in index.at(*place):
        row = int(np.searchsorted(group.start_ns, time_ns, "left" if backwards else "right")) - backwards
        if 0 <= row < len(group.start_ns):
            found = _found(group, row)
            if best is None or (found.start_ns > best.start_ns) == backwards:
                best = found
    return best


def step_at(index: Index, host: str, time_ns: int) -> FoundEvent | None:
    """Return the step of a host that holds a moment."""
    for lane in index.lanes_of(LaneKind.STEPS, host=host):
        for layer, _ in index.of_lane(lane):
            found = at(index, (lane, layer), time_ns, 0)
            if found is not None:
                return found
    return None


def rank_operations(index: Index, host: str, span: tuple[int, int], roles: tuple[str, ...]) -> list[NameTime] | None:
    """Rank what the threads of a host did in a stretch of time, by the time that each name took for itself.

    Args:
        index: The timeline.
        host: Whose threads.
        span: Start and end, ns.
        roles: Of the threads to look at.

    Returns:
        The longest first; None where more than :data:`MAX_EVENTS` events lie in the stretch.
    """
    spent: dict[tuple[int, int], list[int]] = {}
    seen = 0
    for lane in index.lanes_of(LaneKind.THREAD, host=host):
        if index.lanes[lane].role not in roles:
            continue
        layers = [list(_events_in(groups, *span)) for _, groups in index.of_lane(lane)]
        seen += sum(len(name) for layer in layers for _, _, name in layer)
        if seen > MAX_EVENTS:
            return None
        _add_self_times(spent, lane, layers, span)
    by_name: dict[int, list[NameTime]] = {}
    for (name, lane), (self_ns, calls) in spent.items():
        by_name.setdefault(name, []).append(NameTime(name, lane, self_ns, calls))
    ranked = [
        NameTime(
            name,
            max(parts, key=lambda part: part.self_ns).lane,
            sum(part.self_ns for part in parts),
            sum(part.calls for part in parts),
        )
        for name, parts in by_name.items()
    ]
    return sorted((one for one in ranked if one.self_ns), key=lambda one: (-one.self_ns, index.names[one.name]))


_Events = tuple[IntArray, IntArray, NDArray[np.uint32]]


def _events_in(groups: tuple[Group, ...], start_ns: int, end_ns: int) -> Iterator[_Events]:
    for group in groups:
        first, last = group.rows(start_ns, end_ns - 1)
        if last > first:
            start = group.start_ns[first:last]
            yield start, start + group.duration_ns(first, last), group.name[first:last]


def _add_self_times(
    spent: dict[tuple[int, int], list[int]], lane: int, layers: list[list[_Events]], span: tuple[int, int]
) -> None:
    """Add each event's time in the span less what the layer below it covers (layers hold no overlaps)."""
    for layer, events in enumerate(layers):
        below = _intervals(layers[layer + 1] if layer + 1 < len(layers) else [])
        for start, end, name in events:
            bins = np.clip(np.stack((start, end), axis=1), *span)
            own = bins[:, 1] - bins[:, 0] - length_within(clip(below, *span), bins)
            numbers, group = np.unique(name, return_inverse=True)
            self_ns, calls = np.bincount(group, own), np.bincount(group)
            for row, number in enumerate(numbers.tolist()):
                total = spent.setdefault((number, lane), [0, 0])
                total[0] += int(self_ns[row])
                total[1] += int(calls[row])


def _intervals(events: list[_Events]) -> IntArray:
    if not events:
        return np.empty((0, 2), np.int64)
    rows = np.concatenate([np.stack((start, end), axis=1) for start, end, _ in events])
    rows = rows[rows[:, 1] > rows[:, 0]]
    return rows[np.argsort(rows[:, 0], kind="stable")]


def _nearest(group: Group, wanted: NDArray[np.bool_], time_ns: int, backwards: bool) -> FoundEvent | None:
    if backwards:
        rows = np.flatnonzero(wanted[group.name[: int(np.searchsorted(group.start_ns, time_ns, "left"))]])
        return _found(group, int(rows[-1])) if len(rows) else None
    first = int(np.searchsorted(group.start_ns, time_ns, "right"))
    rows = np.flatnonzero(wanted[group.name[first:]])
    return _found(group, first + int(rows[0])) if len(rows) else None


def _found(group: Group, row: int) -> FoundEvent:
    duration = int(group.duration_ns(row, row + 1)[0])
    return FoundEvent(
        group.lane, group.layer, group.event_class, int(group.name[row]), int(group.start_ns[row]), duration
    )
