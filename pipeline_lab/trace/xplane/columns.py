"""Read the events of planes into columns, several lines at a time where cores allow."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from pipeline_lab.trace.file_memory import PER_EVENT, Budget, empty_on_disk, release_pages
from pipeline_lab.trace.parallel import on_all_cores
from pipeline_lab.trace.schema import IndexArray, IntArray, Line, Plane
from pipeline_lab.trace.wire import ByteArray
from pipeline_lab.trace.xplane import plane_wire
from pipeline_lab.trace.xplane.layout import DamagedError, LineBytes, PlaneBytes
from pipeline_lab.trace.xplane.stats import EventStats

STRIDE = 16
"""Events per remembered position: finding a stat walks over at most this many."""
WORTH_A_THREAD = 100_000
MOST_IN_MEMORY = 1 << 24
"""Events of a trace whose columns stay in memory; those of a larger one lie in temporary files that are mapped."""
WORTH_A_FILE = 1 << 16

Columns = tuple[IntArray, IntArray, IndexArray]
"""Start, duration (both ns) and name index of a line's events while they are read."""


@dataclass(frozen=True, eq=False)
class Lookup:
    """Finds the index of an event's name from its metadata id.

    Attributes:
        table: Index by id for small ids, -1 where there is none.
        ids, order: All ids, sorted, and their indices.
    """

    table: IndexArray
    ids: IntArray
    order: IndexArray

    @property
    def arrays(self) -> tuple[IndexArray, IntArray, IndexArray]:
        return self.table, self.ids, self.order


@dataclass(frozen=True, eq=False)
class Filled:
    """The columns of one line's events, and the position of every ``stride``-th."""

    start_ns: IntArray
    duration_ns: IntArray
    name_index: IndexArray
    offsets: IntArray
    stride: int


@dataclass(frozen=True, eq=False)
class Part:
    """One plane of the file with what its lines need: where its names begin in the merged plane, and its time base."""

    plane: PlaneBytes
    first_name: int
    lookup: Lookup
    base_ns: Callable[[int], int]


def read_planes(
    data: ByteArray, planes: Iterable[tuple[PlaneBytes, Callable[[int], int]]], budget: Budget
) -> tuple[Plane, ...]:
    """Read all events; planes of one name become one.

    Args:
        data: The file.
        planes: Each plane, and what turns a line's timestamp into ns since the trace's origin.
        budget: Reserves the columns' memory.

    Raises:
        DamagedError: An event's bytes make no sense.
    """
    merged: dict[str, list[Part]] = {}
    for plane, base_ns in planes:
        parts = merged.setdefault(plane.name, [])
        first = sum(len(part.plane.event_names.names) for part in parts)
        parts.append(Part(plane, first, find_lookup(plane.event_names.ids, first), base_ns))
    todo = [(name, part, line) for name, parts in merged.items() for part in parts for line in part.plane.lines]
    events = sum(line.events for _, _, line in todo)
    budget.take(events, PER_EVENT, "events")
    room = partial(_empty_columns, on_disk=events > MOST_IN_MEMORY)
    each = map if events < WORTH_A_THREAD else on_all_cores
    lines = list(each(lambda job: read_line(data, job[1], job[2], room), todo))
    names = [name for name, _, _ in todo]
    return tuple(
        _merge(name, parts, [line for owner, line in zip(names, lines, strict=True) if owner == name])
        for name, parts in merged.items()
    )


def find_lookup(ids: IntArray, first: int) -> Lookup:
    """Index metadata ids; the k-th name has the index ``first + k``, and a repeated id means its last name."""
    unique, back = np.unique(ids[::-1], return_index=True)
    order = (first + len(ids) - 1 - back).astype(np.int32)
    small = unique[(unique >= 0) & (unique < 8 * len(ids) + 1024)]
    table = np.full(int(small[-1]) + 1 if len(small) else 0, -1, np.int32)
    table[small] = order[np.searchsorted(unique, small)]
    return Lookup(table, unique, order)


def read_line(data: ByteArray, part: Part, line: LineBytes, room: Callable[[int], Columns]) -> Line:
    """Read one line's events; names that the plane does not know get the index -1.

    Args:
        data: The file.
        part: The line's plane.
        line: Where its events lie.
        room: Makes columns for a number of events.
    """
    columns = room(line.events)
    if line.offsets is not None:
        filled = _fill_scattered(data, part, line, line.offsets, columns)
    else:
        filled = _fill(data, part, line, STRIDE, columns)
        if len(filled.start_ns) < line.events:
            filled = _fill(data, part, line, 1, columns)
    for column in columns:
        release_pages(column)
    plane = part.plane
    stats = EventStats(
        data,
        line.stop,
        filled.offsets,
        filled.stride,
        filled.name_index,
        part.first_name,
        plane.event_names.bodies,
        plane.stat_names,
    )
    return Line(line.id, line.name, filled.start_ns, filled.duration_ns, filled.name_index, stats)


def _fill(data: ByteArray, part: Part, line: LineBytes, stride: int, columns: Columns) -> Filled:
    offsets = np.empty(-(-line.events // stride), np.int64)
    base_ns, bounds = part.base_ns(line.timestamp_ns), (line.begin, line.stop)
    written, end = plane_wire.fill_events(data, bounds, base_ns, part.lookup.arrays, columns, offsets, stride)
    if end != line.stop:
        raise DamagedError(end)
    return _filled(columns, written, offsets, stride)


def _fill_scattered(data: ByteArray, part: Part, line: LineBytes, offsets: IntArray, columns: Columns) -> Filled:
    base_ns = part.base_ns(line.timestamp_ns)
    written = plane_wire.fill_scattered(data, base_ns, part.lookup.arrays, columns, offsets)
    return _filled(columns, written, offsets, 1)


def _filled(columns: Columns, count: int, offsets: IntArray, stride: int) -> Filled:
    start, duration, name_index = columns
    return Filled(start[:count], duration[:count], name_index[:count], offsets, stride)


def _empty_columns(count: int, *, on_disk: bool) -> Columns:
    if on_disk and count >= WORTH_A_FILE:
        return empty_on_disk(count, np.int64), empty_on_disk(count, np.int64), empty_on_disk(count, np.int32)
    return np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int32)


def _merge(name: str, parts: list[Part], lines: list[Line]) -> Plane:
    names = [text for part in parts for text in part.plane.event_names.names]
    shown = [text for part in parts for text in part.plane.event_names.display_names]
    if any(len(line.name_index) and line.name_index.min() < 0 for line in lines):
        for line in lines:
            line.name_index[line.name_index < 0] = len(names)
        names, shown = [*names, ""], [*shown, ""]
    stats = {key: value for part in parts for key, value in part.plane.stats.items()}
    return Plane(name, tuple(lines), tuple(names), tuple(shown), stats)
