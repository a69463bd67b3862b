"""Read the events of planes into columns, several lines at a time where cores allow."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from pipeline_lab.trace import wire
from pipeline_lab.trace.budget import PER_EVENT, Budget
from pipeline_lab.trace.layout import DamagedError, LineBytes, PlaneBytes
from pipeline_lab.trace.schema import IndexArray, IntArray, Line, Plane
from pipeline_lab.trace.stats import EventStats
from pipeline_lab.trace.wire import ByteArray

STRIDE = 16
"""Events per remembered position: finding a stat walks over at most this many."""
WORTH_A_THREAD = 100_000


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
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if events < WORTH_A_THREAD or workers < 2:
        lines = [read_line(data, part, line) for _, part, line in todo]
    else:
        with ThreadPoolExecutor(workers) as pool:
            lines = list(pool.map(lambda job: read_line(data, job[1], job[2]), todo))
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


def read_line(data: ByteArray, part: Part, line: LineBytes) -> Line:
    """Read one line's events; names that the plane does not know get the index -1."""
    columns, offsets, stride = _fill(data, part, line, STRIDE)
    if len(columns[0]) < line.events:
        columns, offsets, stride = _fill(data, part, line, 1)
    start, duration, name_index = columns
    plane = part.plane
    stats = EventStats(
        data, line.stop, offsets, stride, name_index, part.first_name, plane.event_names.bodies, plane.stat_names
    )
    return Line(line.id, line.name, start, duration, name_index, stats)


def _fill(
    data: ByteArray, part: Part, line: LineBytes, stride: int
) -> tuple[tuple[IntArray, IntArray, IndexArray], IntArray, int]:
    count = line.events
    columns = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int32)
    offsets = np.empty(-(-count // stride), np.int64)
    lookup = part.lookup
    written, end = wire.fill_events(
        data,
        (line.begin, line.stop),
        part.base_ns(line.timestamp_ns),
        (lookup.table, lookup.ids, lookup.order),
        columns,
        offsets,
        stride,
    )
    if end != line.stop:
        raise DamagedError(end)
    start, duration, name_index = columns
    return (start[:written], duration[:written], name_index[:written]), offsets, stride


def _merge(name: str, parts: list[Part], lines: list[Line]) -> Plane:
    names = [text for part in parts for text in part.plane.event_names.names]
    shown = [text for part in parts for text in part.plane.event_names.display_names]
    if any(len(line.name_index) and line.name_index.min() < 0 for line in lines):
        for line in lines:
            line.name_index[line.name_index < 0] = len(names)
        names, shown = [*names, ""], [*shown, ""]
    stats = {key: value for part in parts for key, value in part.plane.stats.items()}
    return Plane(name, tuple(lines), tuple(names), tuple(shown), stats)
