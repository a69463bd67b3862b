"""Where planes, lines and names are in a valid XSpace file.

`XSpace{planes=1, errors=2, warnings=3, hostnames=4}`, `XPlane{name=2, lines=3, event_metadata=4, stat_metadata=5, stats=6}`. Maps may come
before or after the lines. The first invalid byte raises `DamagedError`; `salvage` takes over from there.
"""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from pipeline_lab.data_classes import dataclass
from pipeline_lab.trace import wire
from pipeline_lab.trace.file_memory import PER_LINE, PER_NAME, PER_PLANE, MemoryBudget
from pipeline_lab.trace.parallel import on_all_cores
from pipeline_lab.trace.schema import MOST_MESSAGES, IntArray
from pipeline_lab.trace.wire import ByteArray
from pipeline_lab.trace.xplane import plane_wire
from pipeline_lab.trace.xplane.stats import Cells, StatNames, decode, text


class UncountedError(Exception):
    """What the first events of a line let expect of the others does not hold, so that these have to be counted."""


class DamagedError(Exception):
    """The wire format breaks at ``position``."""

    def __init__(self, position: int) -> None:
        super().__init__(f"the wire format breaks at byte {position}")
        self.position = position


@dataclass(frozen=True, eq=False)
class LineBytes:
    """One line before its events are read.

    Attributes:
        id, name, timestamp_ns: As in the file.
        begin, stop: Its bytes.
        events: How many events it holds; if it is long, somewhat more than its first ones let expect.
        offsets: Position of each event where they do not follow each other (damaged files), else None.
    """

    id: int
    name: str
    timestamp_ns: int
    begin: int
    stop: int
    events: int
    offsets: IntArray | None = None


@dataclass(frozen=True, eq=False)
class EventNames:
    """The event metadata of one plane.

    Attributes:
        ids: Metadata ids, shape (n,); where one repeats the last counts.
        names, display_names: Text of each.
        bodies: Bounds of each entry's message, shape (n, 2), or (0, 2) if none carries stats.
    """

    ids: IntArray
    names: tuple[str, ...]
    display_names: tuple[str, ...]
    bodies: IntArray


@dataclass(frozen=True, eq=False)
class PlaneBytes:
    """One plane before its events are read."""

    name: str
    lines: tuple[LineBytes, ...]
    event_names: EventNames
    stat_names: StatNames
    stats: dict[str, int | float | str]


@dataclass(frozen=True, eq=False)
class SpaceBytes:
    """One XSpace before its events are read."""

    planes: tuple[PlaneBytes, ...]
    hostnames: tuple[str, ...]
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


MOST_LETTERS = 1000


def read_messages(data: ByteArray, bounds: IntArray) -> tuple[str, ...]:
    """Return the different texts at ``bounds``, shape (n, 2): the first ones, and of each its beginning."""
    begins = (text(data, begin, min(end, begin + MOST_LETTERS)).strip() for begin, end in bounds.tolist())
    return tuple(islice(dict.fromkeys(filter(None, begins)), MOST_MESSAGES))


ALL = 1 << 48
"""More events than a line has."""


def read_space(data: ByteArray, budget: MemoryBudget, sampled: int) -> SpaceBytes:
    """Find everything but the events.

    Args:
        data: The file.
        budget: Reserves the memory of lines and names.
        sampled: Events of each line to look at; with ``ALL`` they are counted, and a line's other fields may come after them.

    Raises:
        DamagedError: Some bytes are invalid.
    """
    numbers, bounds = index_chunks(data, 0, len(data), budget, PER_PLANE, "planes")
    hosts = tuple(text(data, begin, end) for begin, end in bounds[numbers == 4].tolist())
    planes = tuple(_read_plane(data, begin, end, budget, sampled) for begin, end in bounds[numbers == 1].tolist())
    errors, warnings = (read_messages(data, bounds[numbers == field]) for field in (2, 3))
    return SpaceBytes(planes, hosts, errors, warnings)


def index_chunks(
    data: ByteArray, begin: int, stop: int, budget: MemoryBudget, bytes_each: int, what: str
) -> tuple[wire.Int32Array, IntArray]:
    """Return field numbers, shape (n,), and bounds, shape (n, 2), of a message's chunks."""
    count, end = wire.count_chunks(data, begin, stop)
    if end != stop:
        raise DamagedError(end)
    budget.take(count, bytes_each, what)
    numbers, bounds = np.zeros(count, np.int32), np.zeros((count, 2), np.int64)
    wire.index_chunks(data, begin, stop, numbers, bounds)
    return numbers, bounds


def _read_plane(data: ByteArray, begin: int, stop: int, budget: MemoryBudget, sampled: int) -> PlaneBytes:
    numbers, bounds = index_chunks(data, begin, stop, budget, PER_NAME, "names")
    names = bounds[numbers == 2]
    if len(names) > 1:
        raise DamagedError(int(names[1, 0]))
    return build_plane(
        data,
        name=text(data, *names[0].tolist()) if len(names) else "",
        lines=tuple(_read_lines(data, bounds[numbers == 3], budget, sampled)),
        event_names=bounds[numbers == 4],
        stat_names=bounds[numbers == 5],
        stats=bounds[numbers == 6],
    )


def build_plane(
    data: ByteArray,
    *,
    name: str,
    lines: tuple[LineBytes, ...],
    event_names: IntArray,
    stat_names: IntArray,
    stats: IntArray,
) -> PlaneBytes:
    """Read a plane's names and own stats at the given bounds, each of shape (n, 2)."""
    known = StatNames(dict(_read_stat_names(data, stat_names)))
    return PlaneBytes(name, lines, _read_event_names(data, event_names), known, _read_stats(data, stats, known))


EVENT_BYTES = 32
"""About what an event takes in a file."""
SPARE = 16
"""Room for so many events more, as a share, than the first ones of a line let expect; what is left over lies between lines, and is
seldom more than a part of a large page."""


def _read_lines(data: ByteArray, bounds: IntArray, budget: MemoryBudget, sampled: int) -> list[LineBytes]:
    budget.take(len(bounds), PER_LINE, "lines")
    size_bytes = int(np.minimum(bounds[:, 1] - bounds[:, 0], sampled * EVENT_BYTES).sum())
    return on_all_cores(
        lambda line: _read_line(data, line[0], line[1], sampled), bounds.tolist(), size_bytes // EVENT_BYTES
    )


def _read_line(data: ByteArray, begin: int, stop: int, sampled: int) -> LineBytes:
    head = np.zeros(plane_wire.LINE_COLUMNS, np.int64)
    end = plane_wire.read_line(data, begin, stop, sampled, head)
    if end != stop:
        if head[plane_wire.LINE_EVENTS] < sampled:
            raise DamagedError(end)
        expected = sampled * (stop - begin) // (end - begin)
        head[plane_wire.LINE_EVENTS] = expected + expected // SPARE
    return build_line(data, head, begin, stop)


def build_line(data: ByteArray, head: IntArray, begin: int, stop: int) -> LineBytes:
    """Make a line of its ``plane_wire.LINE_…`` columns."""
    name = text(data, int(head[plane_wire.LINE_NAME]), int(head[plane_wire.LINE_NAME_END]))
    display = text(data, int(head[plane_wire.LINE_DISPLAY]), int(head[plane_wire.LINE_DISPLAY_END]))
    return LineBytes(
        id=int(head[plane_wire.LINE_ID]),
        name=name or display,
        timestamp_ns=int(head[plane_wire.LINE_TIMESTAMP]),
        begin=begin,
        stop=stop,
        events=int(head[plane_wire.LINE_EVENTS]),
    )


def _read_names(data: ByteArray, bounds: IntArray) -> IntArray:
    table = np.zeros((len(bounds), plane_wire.NAME_COLUMNS), np.int64)
    damage = plane_wire.read_names(data, bounds, table)
    if damage != wire.DAMAGED:
        raise DamagedError(damage)
    return table


def _read_event_names(data: ByteArray, bounds: IntArray) -> EventNames:
    table = _read_names(data, bounds)
    has_stats = bool(table[:, plane_wire.NAME_STATS].any())
    names = _texts(data, table[:, [plane_wire.NAME_BEGIN, plane_wire.NAME_END]])
    shown = _texts(data, table[:, [plane_wire.NAME_DISPLAY, plane_wire.NAME_DISPLAY_END]])
    return EventNames(
        ids=table[:, plane_wire.NAME_ID].copy(),
        names=names,
        display_names=tuple(short or name for short, name in zip(shown, names, strict=True)),
        bodies=table[:, [plane_wire.NAME_BODY, plane_wire.NAME_BODY_END]] if has_stats else np.zeros((0, 2), np.int64),
    )


def _read_stat_names(data: ByteArray, bounds: IntArray) -> Iterator[tuple[int, str]]:
    table = _read_names(data, bounds)
    return zip(
        table[:, plane_wire.NAME_ID].tolist(),
        _texts(data, table[:, [plane_wire.NAME_BEGIN, plane_wire.NAME_END]]),
        strict=True,
    )


def _texts(data: ByteArray, bounds: IntArray) -> tuple[str, ...]:
    return tuple(text(data, begin, end) for begin, end in bounds.tolist())


def _read_stats(data: ByteArray, bounds: IntArray, names: StatNames) -> dict[str, int | float | str]:
    """Decode a plane's own stats; those without a name or a value are left out."""
    stats = {}
    for begin, stop in bounds.tolist():
        stat, kind, first, second = plane_wire.read_stat(data, begin, stop)
        cell = Cells(np.array([kind], np.int8), np.array([[first, second]], np.int64))
        name, value = names.by_id.get(int(stat)), decode(data, names, cell, 0)
        if name is not None and value is not None:
            stats[name] = value
    return stats
