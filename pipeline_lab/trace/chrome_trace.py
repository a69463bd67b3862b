"""Read a ``trace.json`` as TensorFlow 2.2 to 2.8 and JAX write it next to or instead of an XSpace.

This is the Chrome trace format: times are microseconds (whatever ``displayTimeUnit`` says), processes are planes,
threads are lines, ``name`` is the short name of an event and ``args.long_name`` the full one, ids are text, and events
without a duration were dropped by the writer.

A compiled search finds the objects of the array, over damage if need be. They are parsed some hundred at a time, so that
memory stays a small multiple of the file.
"""

import json
import math
import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace.compiled import compiled
from pipeline_lab.trace.file_memory import PER_LINE, PER_NAME, PER_PLANE, MemoryBudget
from pipeline_lab.trace.schema import BoolArray, IntArray, Line, Plane, Salvage, StatSource, Trace, index_type
from pipeline_lab.trace.wire import DAMAGED, ByteArray, Int64Array
from pipeline_lab.trace.xplane.stats import as_float, as_int
from pipeline_lab.trace.xplane.xspace import EPOCH_NS, LIMIT_NS
from pipeline_lab.units import format_bytes

QUOTE, BACKSLASH, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET = 0x22, 0x5C, 0x7B, 0x7D, 0x5B, 0x5D
MAX_OBJECT = 1 << 20
"""Bytes that one event may take."""

# What `find_objects` keeps between calls: where to continue, how many bytes it may still scan without success, bytes lost,
# and the position of the first lost byte (-1 if there is none).
AT, PATIENCE, LOST, FIRST_LOST, STATE_COLUMNS = range(5)


@compiled
def object_end(data: ByteArray, at: int, stop: int) -> int:
    """Return the position after the object or array that begins at ``at``; `DAMAGED` if it does not end."""
    depth, in_string = 0, False
    while at < stop:
        byte = data[at]
        if byte == BACKSLASH and in_string:
            at += 1
        elif byte == QUOTE:
            in_string = not in_string
        elif in_string:
            pass
        elif byte in (OPEN_BRACE, OPEN_BRACKET):
            depth += 1
        elif byte in (CLOSE_BRACE, CLOSE_BRACKET):
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return DAMAGED


@compiled
def find_objects(data: ByteArray, bounds: Int64Array, state: Int64Array) -> int:
    """Find the next adjacent objects.

    An object that does not end is damage: the search continues after its first brace, within its limit of scanned bytes.

    Args:
        data: The file.
        bounds: Filled with begin and end of each object, shape (n, 2).
        state: Where to continue, shape (STATE_COLUMNS,); changed.

    Returns:
        How many were found; fewer than ``len(bounds)`` at the end of the file.
    """
    at, stop, row = state[AT], len(data), 0
    broken = -1
    while at < stop and row < len(bounds) and state[PATIENCE] > 0:
        if data[at] != OPEN_BRACE:
            at += 1
            continue
        limit = min(stop, at + MAX_OBJECT)
        end = object_end(data, at, limit)
        if end == DAMAGED:
            state[PATIENCE] -= limit - at
            broken = at if broken < 0 else broken
            at += 1
            continue
        if broken >= 0:
            note_lost(state, broken, at)
            broken = -1
        bounds[row, 0], bounds[row, 1] = at, end
        row += 1
        at = end
    if state[PATIENCE] <= 0:
        broken, at = at if broken < 0 else broken, stop
    if broken >= 0:
        note_lost(state, broken, at)
    state[AT] = at
    return row


@compiled
def note_lost(state: Int64Array, begin: int, end: int) -> None:
    """Add ``[begin, end)`` to the bytes lost."""
    state[LOST] += end - begin
    if state[FIRST_LOST] < 0:
        state[FIRST_LOST] = begin


BLOCK = 16_384
BATCH = 256
"""Events parsed in one go."""
HEAD = 1 << 16
LOOKS_PER_BYTE = 16
"""Bytes that may be scanned per byte of the file in search of events after damage."""

_DECODER = json.JSONDecoder(strict=False)
_FIRST_HALF, _SECOND_HALF = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_LONE_HALF = re.compile(f"{_FIRST_HALF}(?!{_SECOND_HALF})|(?<!{_FIRST_HALF}){_SECOND_HALF}")
"""Half of a character beyond 16 bits, as where a writer cut a name: no text that can be written down."""


class JsonEvents:
    """The events of a file.

    Args:
        data: The file.
        begin: Where their array begins.
    """

    def __init__(self, data: ByteArray, begin: int) -> None:
        self._data = data
        self._state = np.zeros(STATE_COLUMNS, np.int64)
        self._state[:] = (begin, HEAD + LOOKS_PER_BYTE * len(data), 0, -1)

    @property
    def bytes_lost(self) -> int:
        """Bytes so far that are not events."""
        return int(self._state[LOST])

    @property
    def first_lost(self) -> int:
        """Position of the first of them, -1 if there is none."""
        return int(self._state[FIRST_LOST])

    def __iter__(self) -> Iterator[tuple[dict[str, Any], int]]:
        """Yield each event and its position."""
        bounds = np.zeros((BLOCK, 2), np.int64)
        while count := find_objects(self._data, bounds, self._state):
            for batch in _batches(bounds[:count]):
                events = _parse_batch(self._data, batch)
                for event, (at, end) in zip(events, batch.tolist(), strict=True):
                    if event is None:
                        self._go_on_inside(at, end)
                        break
                    yield event, at
                else:
                    continue
                break

    def _go_on_inside(self, at: int, end: int) -> None:
        """Search again after the first brace of invalid JSON: a lost quote joins intact events."""
        self._state[AT] = at + 1
        self._state[PATIENCE] -= end - at
        note_lost(self._state, at, at + 1)


def parse(data: ByteArray, begin: int, end: int) -> dict[str, Any] | None:
    """Return the object at ``[begin, end)``, None if there is none."""
    value = _decode(data[begin:end].tobytes())
    return value if isinstance(value, dict) else None


def _batches(bounds: IntArray) -> Iterator[IntArray]:
    """Divide events into runs that are parsed together, short ones so that few are in memory at a time."""
    first = 0
    while first < len(bounds):
        near = int(np.searchsorted(bounds[:, 1], bounds[first, 0] + MAX_OBJECT))
        end = max(first + 1, min(first + BATCH, near))
        yield bounds[first:end]
        first = end


def _parse_batch(data: ByteArray, bounds: IntArray) -> Iterable[dict[str, Any] | None]:
    """Parse events in one go, and one by one, as they are asked for, where that fails."""
    begin, end = int(bounds[0, 0]), int(bounds[-1, 1])
    block = data[begin:end].tobytes()
    array_of_them = b"[%b]" % b",".join([block[at - begin : stop - begin] for at, stop in bounds.tolist()])
    events = _decode(array_of_them)
    if isinstance(events, list) and len(events) == len(bounds) and all(isinstance(event, dict) for event in events):
        return events
    return (parse(data, at, stop) for at, stop in bounds.tolist())


def _decode(content: bytes) -> object:
    """Return the value of a JSON text, None if it is none; control characters inside strings are let through."""
    text = content.decode("utf-8", "replace")
    try:
        return _DECODER.decode(_LONE_HALF.sub(r"\\ufffd", text) if "\\u" in text else text)
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True, eq=False)
class JsonStats(StatSource):
    """Decodes the arguments of one thread's events.

    Attributes:
        data: The file.
        begin: Position of each event, shape (n,).
    """

    data: ByteArray
    begin: IntArray

    def ints(self, rows: IntArray, stat: str) -> tuple[IntArray, BoolArray]:
        values, known = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
        for k, value in enumerate(self._values(rows, stat)):
            number = as_int(value)
            if number is None and isinstance(value, str) and value.isdecimal() and len(value) <= 20:
                number = as_int((int(value) + 2**63) % 2**64 - 2**63)
            if number is not None:
                values[k], known[k] = number, True
        return values, known

    def floats(self, rows: IntArray, stat: str) -> NDArray[np.float64]:
        values = (math.nan if value is None else as_float(str(value)) for value in self._values(rows, stat))
        return np.fromiter(values, np.float64, len(rows))

    def texts(self, rows: IntArray, stat: str) -> list[str | None]:
        return [None if value is None else str(value) for value in self._values(rows, stat)]

    def _values(self, rows: IntArray, stat: str) -> Iterator[int | float | str | None]:
        for begin in self.begin[np.asarray(rows, np.int64)].tolist():
            end = object_end(self.data, begin, len(self.data))
            args = (parse(self.data, begin, end) or {}).get("args")
            value = args.get(stat) if isinstance(args, dict) else None
            yield value if isinstance(value, int | float | str) else None


HALF_PS_NS = 5e-4
"""Times have picoseconds at most; this keeps 1.001 µs from becoming 1,000.999… ns and then 1,000."""

_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_PYTORCH = re.compile(rb'"(deviceProperties|schemaVersion|ProfilerStep#\d+|aten::\w+)"')


def read_bytes(data: ByteArray, path: Path, *, window: str = "") -> Trace:
    """Read a Chrome trace; ``path`` says where it came from.

    Raises:
        TraceReadError: It is none, or one of PyTorch.
    """
    head = data[:HEAD].tobytes()
    if _PYTORCH.search(head):
        raise TraceReadError(
            f"{path.name} is a trace of PyTorch's profiler (Kineto); expected one of TensorFlow's or JAX's profiler."
        )
    scan = _ChromeScan(data, MemoryBudget(path.name, len(data)))
    events = JsonEvents(data, _begin_of_events(head))
    for event in events:
        scan.add(*event)
    if not scan.lines:
        raise TraceReadError(
            f"{path.name} is JSON without trace events; expected the <host>.trace.json.gz of a TensorFlow profile."
        )
    planes, origin = scan.planes()
    trace = Trace(path, "", window, planes, origin, None, None, len(data))
    return trace if not events.bytes_lost else _salvaged(trace, events, len(data))


def _begin_of_events(head: bytes) -> int:
    found = _EVENTS_KEY.search(head)
    return found.end() if found else 0


def _salvaged(trace: Trace, events: JsonEvents, size: int) -> Trace:
    lost = events.bytes_lost
    if events.first_lost + lost == size:
        reason = f"The file is cut off: {format_bytes(size - lost)} were read; how much is missing is not known."
    else:
        where = f"{format_bytes(lost)} of {format_bytes(size)}, from byte {events.first_lost:,} on,"
        reason = f"{where} are not events; the file is damaged or cut off."
    return replace(trace, salvage=Salvage(lost, trace.event_count, reason))


@dataclass(eq=False)
class _ThreadColumns:
    """The events of one thread while they grow."""

    start_ns: "array[int]" = field(default_factory=lambda: array("q"))
    duration_ns: "array[int]" = field(default_factory=lambda: array("q"))
    name_index: "array[int]" = field(default_factory=lambda: array("i"))
    begin: "array[int]" = field(default_factory=lambda: array("q"))


Key = int | str


class _ChromeScan:
    """Collects the events of a file by process and thread."""

    def __init__(self, data: ByteArray, budget: MemoryBudget) -> None:
        self._data = data
        self._budget = budget
        self._processes: dict[Key, str] = {}
        self._threads: dict[tuple[Key, Key], str] = {}
        self._names: dict[Key, dict[tuple[str, str], int]] = {}
        self.lines: dict[Key, dict[Key, _ThreadColumns]] = {}

    def add(self, event: dict[str, Any], at: int) -> None:
        """Take up one event; what is neither an event in time nor a name is left out."""
        pid, tid, phase = event.get("pid"), event.get("tid"), event.get("ph")
        if not isinstance(pid, int | str):
            return
        if phase == "M":
            self._add_name(event, pid, tid)
        elif phase in ("X", "i", "I") and isinstance(tid, int | str):
            start, end = _span_ns(event)
            if start is not None and end is not None:
                self._add_event(event, pid, tid, (start, end, at))

    def _add_name(self, event: dict[str, Any], pid: Key, tid: object) -> None:
        args = event.get("args")
        name = args.get("name") if isinstance(args, dict) else None
        if not isinstance(name, str):
            return
        self._budget.take(1, PER_NAME, "names")
        if event.get("name") == "process_name":
            self._processes[pid] = name
        elif event.get("name") == "thread_name" and isinstance(tid, int | str):
            self._threads[pid, tid] = name

    def _add_event(self, event: dict[str, Any], pid: Key, tid: Key, place: tuple[int, int, int]) -> None:
        threads = self.lines.get(pid)
        if threads is None:
            self._budget.take(1, PER_PLANE, "processes")
            threads = self.lines[pid] = {}
        columns = threads.get(tid)
        if columns is None:
            self._budget.take(1, PER_LINE, "threads")
            columns = threads[tid] = _ThreadColumns()
        start, end, at = place
        columns.start_ns.append(start)
        columns.duration_ns.append(max(0, end - start))
        columns.name_index.append(self._name(event, pid))
        columns.begin.append(at)

    def _name(self, event: dict[str, Any], pid: Key) -> int:
        short, args = str(event.get("name", "")), event.get("args")
        full = args.get("long_name") if isinstance(args, dict) else None
        name = (full if isinstance(full, str) else short, short)
        names = self._names.setdefault(pid, {})
        index = names.get(name)
        if index is None:
            self._budget.take(1, PER_NAME, "names")
            index = names[name] = len(names)
        return index

    def planes(self) -> tuple[tuple[Plane, ...], int | None]:
        """Return the planes, and the epoch of time 0 if times counted from the epoch."""
        earliest = min(min(columns.start_ns) for threads in self.lines.values() for columns in threads.values())
        origin = earliest if earliest > EPOCH_NS else None
        processes: dict[str, list[Key]] = {}
        for pid in dict.fromkeys([*self._processes, *self.lines]):
            processes.setdefault(self._processes.get(pid) or f"process {pid}", []).append(pid)
        return tuple(self._plane(name, pids, origin or 0) for name, pids in processes.items()), origin

    def _plane(self, name: str, pids: list[Key], origin: int) -> Plane:
        names: list[tuple[str, str]] = []
        lines: list[Line] = []
        index = index_type(sum(len(self._names.get(pid, {})) for pid in pids))
        for pid in pids:
            lines += [
                self._line(columns, self._threads.get((pid, tid)) or str(tid), tid, origin, len(names), index)
                for tid, columns in self.lines.get(pid, {}).items()
            ]
            names += self._names.get(pid, {})
        return Plane(name, tuple(lines), tuple(full for full, _ in names), tuple(short for _, short in names), {})

    def _line(
        self, columns: _ThreadColumns, name: str, tid: Key, origin: int, first_name: int, index: type[np.int32]
    ) -> Line:
        return Line(
            id=as_int(tid) or 0,
            name=name,
            start_ns=np.frombuffer(columns.start_ns, np.int64) - origin,
            duration_ns=np.frombuffer(columns.duration_ns, np.int64),
            name_index=(np.frombuffer(columns.name_index, np.int32) + np.int32(first_name)).astype(index),
            stats=JsonStats(self._data, np.frombuffer(columns.begin, np.int64)),
        )


def _span_ns(event: dict[str, Any]) -> tuple[int | None, int | None]:
    """Return start and end in ns; None if the event does not say."""
    start, duration = event.get("ts"), event.get("dur", 0)
    if not isinstance(start, int | float) or not isinstance(duration, int | float):
        return None, None
    if not (abs(start) < LIMIT_NS and abs(duration) < LIMIT_NS):  # of some whole numbers no float holds the sum
        return None, None
    return _to_ns(start), _to_ns(start + duration)


def _to_ns(microseconds: float) -> int | None:
    nanoseconds = microseconds * 1000
    if isinstance(nanoseconds, float):
        nanoseconds += HALF_PS_NS
    return math.floor(nanoseconds) if abs(nanoseconds) < LIMIT_NS else None
