"""Read an ``.xplane.pb`` file into columns, without TensorFlow and without building a message tree.

The file is mapped, not loaded. A first pass finds planes, lines and names, a second one fills the columns with the events,
several lines at a time where cores allow; both are compiled and check every byte that they touch. How many events a long line
holds is estimated by its first ones; where that proves wrong, all are counted. Stats stay encoded until one is needed.

All planes of a file share one time axis. TensorFlow writes ``line.timestamp_ns`` relative to the start of the session,
and newer captures say in a plane called ``Task Environment`` when that was. Some captures hold times since the epoch
instead. A file of concatenated XSpaces holds several sessions, each with its own start.
"""

import contextlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from operator import itemgetter
from pathlib import Path

import numpy as np

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace.file_memory import PER_EVENT, MemoryBudget, empty_on_disk, map_path, release_pages
from pipeline_lab.trace.parallel import on_all_cores
from pipeline_lab.trace.schema import (
    ChooseStat,
    IndexArray,
    IntArray,
    Line,
    Plane,
    Salvage,
    Trace,
    choose_none,
    index_type,
)
from pipeline_lab.trace.wire import ByteArray
from pipeline_lab.trace.xplane import plane_wire
from pipeline_lab.trace.xplane.layout import (
    ALL,
    DamagedError,
    LineBytes,
    PlaneBytes,
    SpaceBytes,
    UncountedError,
    build_line,
    read_space,
)
from pipeline_lab.trace.xplane.stats import EventStats, KeptStats, StatKeeper, ToKeep, choose_kept

STRIDE = 16
"""Events per remembered position: finding a stat walks over at most this many."""
PIECE = 1 << 18
"""Events that are read before the file's pages are given back."""
SAMPLED = 1 << 14
"""Events by which the number of those of a long line is estimated."""
MOST_IN_MEMORY = 1 << 24
"""Events of a trace whose columns stay in memory; a larger trace uses mapped temporary files, and no stat of it is kept."""

EventColumnArrays = tuple[IntArray, IntArray, IndexArray]
"""Start, duration (both ns) and name index of events while they are read."""


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
    """The columns of one line's events, the position of every ``stride``-th, and what the line's other fields say."""

    line: LineBytes
    start_ns: IntArray
    duration_ns: IntArray
    name_index: IndexArray
    offsets: IntArray
    stride: int
    kept: KeptStats | None


@dataclass(frozen=True, eq=False)
class PlanePart:
    """One plane of the file with what its lines need: where its names begin in the merged plane, its time base, what is kept."""

    plane: PlaneBytes
    first_name: int
    lookup: Lookup
    base_ns: Callable[[int], int]
    chosen: ToKeep


def read_planes(
    data: ByteArray,
    planes: Iterable[tuple[PlaneBytes, Callable[[int], int]]],
    budget: MemoryBudget,
    keep: ChooseStat,
    *,
    is_counted: bool,
) -> tuple[Plane, ...]:
    """Read all events; planes of one name become one.

    Args:
        data: The file.
        planes: Each plane, and what turns a line's timestamp into ns since the trace's origin.
        budget: Reserves the columns' memory.
        keep: Says which stat is kept of an event.
        is_counted: No line's number of events is an estimate.

    Raises:
        DamagedError: An event's bytes are invalid.
        UncountedError: The events have to be counted first.
    """
    found = list(planes)
    events = sum(line.events for plane, _ in found for line in plane.lines)
    if not is_counted and (events > MOST_IN_MEMORY or not budget.has_room(events, PER_EVENT)):
        raise UncountedError
    budget.take(events, PER_EVENT, "events")
    merged: dict[str, list[PlanePart]] = {}
    for plane, base_ns in found:
        parts = merged.setdefault(plane.name, [])
        first = sum(len(part.plane.event_names.names) for part in parts)
        # What events do not carry themselves may be in their metadata: then what is kept of them would not be all.
        can_keep = events <= MOST_IN_MEMORY and not len(plane.event_names.bodies)
        chosen = choose_kept(keep if can_keep else choose_none, plane.event_names.names, first, plane.stat_names)
        parts.append(PlanePart(plane, first, find_lookup(plane.event_names.ids, first), base_ns, chosen))
    todo = [(name, part, line) for name, parts in merged.items() for part in parts for line in part.plane.lines]
    names = max((sum(len(part.plane.event_names.names) for part in parts) for parts in merged.values()), default=0)
    # One array for all lines is cheaper than one for each: the system hands out large ones in large pages.
    columns = _empty_columns(events, index_type(names))
    ends = pairwise(accumulate((line.events for _, _, line in todo), initial=0))
    jobs = [(part, line, slice(*rows)) for (_, part, line), rows in zip(todo, ends, strict=True)]
    longest_first = sorted(range(len(jobs)), key=lambda number: -jobs[number][1].events)
    read = on_all_cores(lambda number: read_line(data, *jobs[number], columns), longest_first, events)
    lines = [line for _, line in sorted(zip(longest_first, read, strict=True), key=itemgetter(0))]
    owners = [name for name, _, _ in todo]
    return tuple(
        _merge(name, parts, [line for owner, line in zip(owners, lines, strict=True) if owner == name])
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


def read_line(data: ByteArray, part: PlanePart, line: LineBytes, rows: slice, columns: EventColumnArrays) -> Line:
    """Read one line's events; names that the plane does not know get the index -1.

    Args:
        data: The file.
        part: The line's plane.
        line: Where its events are.
        rows: Where they go.
        columns: For the events of all lines.

    Raises:
        DamagedError: An event's bytes are invalid.
        UncountedError: There are more events than were expected, or the line says only after them when they began.
    """
    start, duration, name_index = columns
    own = (start[rows], duration[rows], name_index[rows])
    if line.offsets is not None:
        filled = _fill_scattered(data, part, line, line.offsets, own)
    else:
        filled = _fill(data, part, line, STRIDE, own)
        line = filled.line
        if len(filled.start_ns) < line.events:
            filled = _fill(data, part, line, 1, own)
    for column in columns:
        release_pages(column, rows.start * column.itemsize, rows.stop * column.itemsize)
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
        filled.kept,
    )
    return Line(line.id, line.name, filled.start_ns, filled.duration_ns, filled.name_index, stats)


def _fill(data: ByteArray, part: PlanePart, line: LineBytes, stride: int, columns: EventColumnArrays) -> Filled:
    """Fill the columns piece by piece; the file's pages that a piece has touched need not stay in memory."""
    most = len(columns[0])
    head, offsets = np.zeros(plane_wire.LINE_COLUMNS, np.int64), np.empty(-(-most // stride), np.int64)
    keeper = StatKeeper(part.chosen, most)
    base_ns, row, at = part.base_ns(line.timestamp_ns), 0, line.begin
    while True:
        piece, bounds = slice(row, row + PIECE), (at, line.stop)
        room = (columns[0][piece], columns[1][piece], columns[2][piece])
        names, keep = part.lookup.arrays, keeper.chosen.arguments
        written, end, kept = plane_wire.fill_events(
            data, bounds, base_ns, names, room, row, (offsets, stride), head, keep, keeper.room
        )
        keeper.add(kept)
        if most > PIECE:
            release_pages(data, at, end)
        row, at = row + written, end
        if at == line.stop:
            break
        if written < len(room[0]):
            raise DamagedError(at)
        if row == most:
            raise UncountedError
    told = build_line(data, head, line.begin, line.stop)
    if told.timestamp_ns != line.timestamp_ns:
        raise UncountedError
    start, duration, name_index = columns
    return Filled(told, start[:row], duration[:row], name_index[:row], offsets, stride, keeper.kept())


def _fill_scattered(
    data: ByteArray, part: PlanePart, line: LineBytes, offsets: IntArray, columns: EventColumnArrays
) -> Filled:
    base_ns = part.base_ns(line.timestamp_ns)
    row = plane_wire.fill_scattered(data, base_ns, part.lookup.arrays, columns, offsets)
    start, duration, name_index = columns
    return Filled(line, start[:row], duration[:row], name_index[:row], offsets, 1, None)


def _empty_columns(count: int, index: type[np.int32]) -> EventColumnArrays:
    empty = empty_on_disk if count > MOST_IN_MEMORY else np.empty
    return empty(count, np.int64), empty(count, np.int64), empty(count, index)


def _merge(name: str, parts: list[PlanePart], lines: list[Line]) -> Plane:
    names = [text for part in parts for text in part.plane.event_names.names]
    shown = [text for part in parts for text in part.plane.event_names.display_names]
    if any(len(line.name_index) and line.name_index.min() < 0 for line in lines):
        for line in lines:
            line.name_index[line.name_index < 0] = len(names)
        names, shown = [*names, ""], [*shown, ""]
    stats = {key: value for part in parts for key, value in part.plane.stats.items()}
    return Plane(name, tuple(lines), tuple(names), tuple(shown), stats)


ENVIRONMENT = "Task Environment"
EPOCH_NS = 10**17
"""Times beyond this (three years) count from the epoch: no session lasts that long."""
LATEST_EPOCH_NS = 4 * 10**18
LIMIT_NS = 2**62


@dataclass(frozen=True)
class Session:
    """One profiler session inside a file.

    Attributes:
        planes: Its planes; names do not repeat.
        start_epoch_ns, stop_epoch_ns: When the profiler was on, or None if the file does not say.
        origin_epoch_ns: Epoch of its time 0, or None.
    """

    planes: tuple[PlaneBytes, ...]
    start_epoch_ns: int | None
    stop_epoch_ns: int | None
    origin_epoch_ns: int | None

    def shifted(self, timestamp_ns: int, trace_origin_ns: int | None) -> int:
        """Return a line's base in ns since the trace's origin, bounded so that sums stay in int64."""
        if timestamp_ns > EPOCH_NS and self.origin_epoch_ns is not None:
            timestamp_ns -= self.origin_epoch_ns
        if trace_origin_ns is not None and self.origin_epoch_ns is not None:
            timestamp_ns += self.origin_epoch_ns - trace_origin_ns
        return max(-LIMIT_NS, min(LIMIT_NS, timestamp_ns))


def find_sessions(planes: Sequence[PlaneBytes]) -> list[Session]:
    """Split concatenated spaces: a plane name that comes again begins the next session."""
    groups: list[dict[str, PlaneBytes]] = [{}]
    for plane in planes:
        if plane.name in groups[-1]:
            groups.append({})
        groups[-1][plane.name] = plane
    return [_session(tuple(group.values())) for group in groups]


def _session(planes: tuple[PlaneBytes, ...]) -> Session:
    stats = next((plane.stats for plane in planes if plane.name == ENVIRONMENT), {})
    start, stop = _epoch(stats.get("profile_start_time")), _epoch(stats.get("profile_stop_time"))
    absolute = [line.timestamp_ns for plane in planes for line in plane.lines if line.timestamp_ns > EPOCH_NS]
    return Session(planes, start, stop, start if start is not None else min(absolute, default=None))


def _epoch(value: object) -> int | None:
    return value if isinstance(value, int) and EPOCH_NS < value < LATEST_EPOCH_NS else None


_PROCESS = re.compile(r"\.rank\d+(?=\.xplane\.pb)")
"""How the file of one of several processes of a job is named: ``<host>.rank1.xplane.pb``."""


def read_xplane(path: Path, *, window: str = "", keep: ChooseStat = choose_none) -> Trace:
    """Read one capture.

    Args:
        path: An ``.xplane.pb`` file.
        window: Name of the session folder it belongs to.
        keep: Says which stat to keep at hand of an event.

    Raises:
        TraceReadError: The file cannot be opened, is empty or is no XSpace.
    """
    return read_bytes(map_path(path), path, window=window, keep=keep)


def read_bytes(data: ByteArray, path: Path, *, window: str = "", keep: ChooseStat = choose_none) -> Trace:
    """Read a serialized XSpace, salvaging what can be if it is damaged.

    Args:
        data: The bytes, mapped or in memory.
        path: Where they came from.
        window: Name of the session folder.
        keep: Says which stat to keep at hand of an event.
    """
    try:
        return _read_sound(data, path, window, keep) or _read_damaged(data, path, window)
    finally:
        release_pages(data)


def _read_sound(data: ByteArray, path: Path, window: str, keep: ChooseStat) -> Trace | None:
    """Read a sound file; return None if it is damaged."""
    try:
        for sampled in (SAMPLED, ALL):
            budget = MemoryBudget(path.name, len(data))
            with contextlib.suppress(UncountedError):
                space = read_space(data, budget, sampled)
                return build_trace(data, space, budget, path, window, keep, is_counted=sampled == ALL)
    except DamagedError:
        pass
    return None


def _read_damaged(data: ByteArray, path: Path, window: str) -> Trace:
    from pipeline_lab.trace.xplane.salvage import salvage_space  # most files are sound

    budget = MemoryBudget(path.name, len(data))
    space, loss = salvage_space(data, budget)
    trace = build_trace(data, space, budget, path, window)
    reason = loss.reason(data)
    if trace.event_count and not any(any(plane.names) for plane in trace.planes):
        reason = reason.rstrip(".") + ", and the names of its events are among what is lost."
    return replace(trace, salvage=Salvage(loss.skipped + loss.missing, trace.event_count, reason))


def build_trace(
    data: ByteArray,
    space: SpaceBytes,
    budget: MemoryBudget,
    path: Path,
    window: str,
    keep: ChooseStat = choose_none,
    *,
    is_counted: bool = True,
) -> Trace:
    """Read the events of ``space`` and put them on one time axis."""
    if not any(plane.name for plane in space.planes):
        raise TraceReadError(
            f"{path.name} holds no profiler planes; expected an XSpace as TensorFlow's profiler writes it "
            "(<host>.xplane.pb), so choose such a file."
        )
    sessions = find_sessions(space.planes)
    origin = next((one.origin_epoch_ns for one in sessions if one.origin_epoch_ns is not None), None)
    bases = [(plane, partial(one.shifted, trace_origin_ns=origin)) for one in sessions for plane in one.planes]
    start, stop = _profiled(sessions, origin)
    return Trace(
        path=path,
        host=_name_host(space.hostnames, path),
        window=window,
        planes=read_planes(data, bases, budget, keep, is_counted=is_counted),
        origin_epoch_ns=origin,
        start_ns=start,
        stop_ns=stop,
        size_bytes=len(data),
        errors=space.errors,
        warnings=space.warnings,
        sessions=_follow_each_other(sessions, origin),
    )


def _name_host(hostnames: tuple[str, ...], path: Path) -> str:
    """Return the host's name, empty if the file does not say; the file names tell processes of one machine apart."""
    process = _PROCESS.search(path.name)
    host = hostnames[0] if hostnames else ""
    return f"{host}{process[0]}" if host and process else host


def _follow_each_other(sessions: list[Session], origin: int | None) -> tuple[tuple[int, int], ...]:
    """Return when each session was on, in ns since the origin, in the order of time; none if they overlap or do not say."""
    spans = sorted((one.start_epoch_ns or 0, one.stop_epoch_ns or 0) for one in sessions)
    known = origin is not None and all(0 < start <= stop for start, stop in spans)
    if not known or any(after[0] < before[1] for before, after in pairwise(spans)):
        return ()
    return tuple((start - (origin or 0), stop - (origin or 0)) for start, stop in spans)


def _profiled(sessions: list[Session], origin: int | None) -> tuple[int | None, int | None]:
    """Return when the profiler was on, in ns since the origin."""
    if origin is None:
        return None, None
    starts = [one.start_epoch_ns - origin for one in sessions if one.start_epoch_ns is not None]
    stops = [one.stop_epoch_ns - origin for one in sessions if one.stop_epoch_ns is not None]
    return min(starts, default=None), max(stops, default=None)
