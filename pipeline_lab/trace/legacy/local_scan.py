"""Scan a serialized `Trace` of trace_events.proto into columns, over damage if need be.

The message is flat: `Trace{devices=1 (map), trace_events=4}`, `Device{name=1, device_id=2, resources=3 (map)}`,
`Resource{name=1, resource_id=2}` and `TraceEvent{device_id=1, resource_id=2, name=3, timestamp_ps=9, duration_ps=10,
args=11 (map)}`. Nothing else ever came, so any other field is damage; the scan then looks for the next event that reads
well. The loop over events is compiled and bounds-checked like those in `wire`.
"""

from dataclasses import field

import numpy as np

from pipeline_lab.data_classes import dataclass
from pipeline_lab.trace.compiled import compiled
from pipeline_lab.trace.file_memory import PER_LINE, PER_NAME, MemoryBudget
from pipeline_lab.trace.legacy import message
from pipeline_lab.trace.legacy.message import VARINT, DamagedMessageError, read_fields, read_text, signed
from pipeline_lab.trace.schema import IndexArray, IntArray
from pipeline_lab.trace.wire import CHUNK, DAMAGED, ByteArray, Int64Array, read_field, read_varint
from pipeline_lab.trace.xplane.plane_wire import to_ns

DEVICE_TAG, RESOURCE_TAG, NAME_TAG, TIMESTAMP_TAG, DURATION_TAG, ARGUMENT_TAG = 0x08, 0x10, 0x1A, 0x48, 0x50, 0x5A
LONG_NAME = tuple(b"long name")
"""The argument that holds the full name where TensorFlow 2.x shortened it to what follows the last colon."""

# Columns of `read_events`: positions are bytes of the file, those of the full name 0 without one; the arguments last
# from the first of them to the end of the event.
DEVICE, RESOURCE, NAME, NAME_END, FULL, FULL_END, START_NS, DURATION_NS, ARGS, END, EVENT_COLUMNS = range(11)


@compiled
def read_events(data: ByteArray, at: int, out: Int64Array) -> tuple[int, int]:
    """Read adjacent events from ``at`` on into ``out``, shape (n, EVENT_COLUMNS).

    Returns:
        Events written, and the position of what is none, or where ``out`` was full.
    """
    row = 0
    while at < len(data) and row < len(out):
        after, _ = read_event(data, at, out[row])
        if after == DAMAGED:
            break
        row += 1
        at = after
    return row, at


@compiled
def read_event(data: ByteArray, at: int, out: Int64Array) -> tuple[int, int]:
    """Read the event at ``at``, shape (EVENT_COLUMNS,).

    Returns:
        The position after it, `DAMAGED` if there is none, and the position up to which it read.
    """
    number, wire, length, end = read_field(data, at, len(data))
    if end < 0 or number != 4 or wire != CHUNK:
        return DAMAGED, at
    out[:] = 0
    out[ARGS] = out[END] = end
    start_ps, duration_ps, named = 0, 0, False
    at = end - length
    while at < end:
        tag = data[at]
        value, after = read_varint(data, at + 1, end)
        if after < 0:
            return DAMAGED, at
        if tag == DEVICE_TAG:
            out[DEVICE] = value
        elif tag == RESOURCE_TAG:
            out[RESOURCE] = value
        elif tag == TIMESTAMP_TAG:
            start_ps = value
        elif tag == DURATION_TAG:
            duration_ps = max(0, value)
        elif tag not in (NAME_TAG, ARGUMENT_TAG) or not 0 <= value <= end - after:
            return DAMAGED, at
        elif tag == NAME_TAG:
            out[NAME], out[NAME_END], named = after, after + value, True
            after += value
        else:
            out[ARGS] = min(out[ARGS], at)
            read_full_name(data, after, after + value, out)
            after += value
        at = after
    out[START_NS], out[DURATION_NS] = to_ns(start_ps, duration_ps)
    return (end if named else DAMAGED), at


@compiled
def read_full_name(data: ByteArray, begin: int, stop: int, out: Int64Array) -> None:
    """Write the bounds of the full name if the argument at ``[begin, stop)``, {key=1, value=2}, holds it."""
    is_it, value_begin, value_end = False, 0, 0
    at = begin
    while at < stop:
        number, wire, value, after = read_field(data, at, stop)
        if after < 0:
            return
        if number == 1 and wire == CHUNK:
            is_it = is_long_name(data, after - value, after)
        elif number == 2 and wire == CHUNK:
            value_begin, value_end = after - value, after
        at = after
    if is_it:
        out[FULL], out[FULL_END] = value_begin, value_end


@compiled
def is_long_name(data: ByteArray, begin: int, stop: int) -> bool:
    if stop - begin != len(LONG_NAME):
        return False
    for k in range(len(LONG_NAME)):  # noqa: SIM110 - Numba knows no generators
        if data[begin + k] != LONG_NAME[k]:
            return False
    return True


PER_EVENT = 84
"""Bytes that the columns of one event take while they are put in the order of their lines."""
BLOCK = 16_384
"""Events that are scanned in one go."""

_EVENT_TAG = b"\x22"
_PATIENCE = 4
"""Bytes that may be scanned per byte of the file in search of events after damage."""
_TRY = 16
MEMO = 65_536
"""Distinct names or labels that are remembered at a time."""


@dataclass(frozen=True, eq=False)
class EventColumns:
    """The events of one resource, or of several while they are read.

    Attributes:
        start_ns, duration_ns: Since the start of the session, shape (n,).
        name: Index in the scan's names, shape (n,).
        args, args_size: Position and length of the events' arguments, shape (n,).
    """

    start_ns: IntArray
    duration_ns: IntArray
    name: IndexArray
    args: IntArray
    args_size: IndexArray

    def take(self, rows: IntArray) -> "EventColumns":
        return EventColumns(
            self.start_ns[rows], self.duration_ns[rows], self.name[rows], self.args[rows], self.args_size[rows]
        )


@dataclass
class DeviceNames:
    """Name of a device, and of its resources by their ids."""

    name: str = ""
    resources: dict[int, str] = field(default_factory=dict)


class LocalScan:
    """Everything that one file holds.

    Attributes:
        data: The file.
        devices: By device id.
        lines: Events by device id and resource id.
        names: Full names of events; `display_names` holds what TensorFlow shows for them.
        events: Number of events.
        bytes_lost: Bytes that made no sense.
        first_damage: Position of the first of them, or None.
    """

    def __init__(self, data: ByteArray, budget: MemoryBudget) -> None:
        self.data = data.tobytes()
        self.devices: dict[int, DeviceNames] = {}
        self.names: list[str] = []
        self.display_names: list[str] = []
        self.events = 0
        self.bytes_lost = 0
        self.first_damage: int | None = None
        self._array = data
        self._budget = budget
        self._indices: dict[tuple[str, str], int] = {}
        self._memo: dict[tuple[bytes, bytes], int] = {}
        self._line_indices: dict[tuple[int, int], int] = {}
        self._blocks: list[tuple[IndexArray, EventColumns]] = []
        self._patience = _PATIENCE * len(data)
        self._run()
        self.lines = self._by_line()

    def _run(self) -> None:
        at, stop = 0, len(self.data)
        block = np.empty((BLOCK, EVENT_COLUMNS), np.int64)
        while at < stop:
            count, at = read_events(self._array, at, block)
            if count:
                self._add(block[:count])
            if count < BLOCK and at < stop:
                at = self._read_other(at)

    def _read_other(self, at: int) -> int:
        """Read anything but an event; return where the next one begins."""
        try:
            part = message.read_field(self.data, at, len(self.data))
            if part.wire != CHUNK or part.number != 1:
                raise DamagedMessageError(at)
            self._read_device(part.begin, part.end)
        except DamagedMessageError:
            after = self._next_event(at + 1)
            self.bytes_lost += after - at
            self.first_damage = at if self.first_damage is None else self.first_damage
            return after
        return part.end

    def _add(self, rows: IntArray) -> None:
        """Take up events, shape (n, EVENT_COLUMNS)."""
        self._budget.take(len(rows), PER_EVENT, "events")
        self.events += len(rows)
        lines, names = [], []
        for device, resource, *bounds in rows[:, : FULL_END + 1].tolist():
            lines.append(self._line(device, resource))
            names.append(self._name(*bounds))
        columns = EventColumns(
            rows[:, START_NS].copy(),
            rows[:, DURATION_NS].copy(),
            np.array(names, np.int32),
            rows[:, ARGS].copy(),
            (rows[:, END] - rows[:, ARGS]).astype(np.int32),
        )
        self._blocks.append((np.array(lines, np.int32), columns))

    def _line(self, device: int, resource: int) -> int:
        index = self._line_indices.get((device, resource))
        if index is None:
            self._reserve(len(self._line_indices), PER_LINE, "threads")
            index = self._line_indices[device, resource] = len(self._line_indices)
        return index

    def _name(self, begin: int, end: int, full: int, full_end: int) -> int:
        """Return the index of a name whose bytes have these bounds; the full one may be among the arguments."""
        key = self.data[begin:end], self.data[full:full_end]
        index = self._memo.get(key)
        if index is None:
            shown, name = (text.decode("utf-8", "replace") for text in key)
            if len(self._memo) >= MEMO:
                self._memo.clear()
            index = self._memo[key] = self._intern(name or shown, shown)
        return index

    def _intern(self, name: str, shown: str) -> int:
        index = self._indices.get((name, shown))
        if index is None:
            self._reserve(len(self.names), PER_NAME, "names")
            self._budget.take(len(name) + len(shown), 4, "letters in names")
            index = self._indices[name, shown] = len(self.names)
            self.names.append(name)
            self.display_names.append(shown)
        return index

    def _by_line(self) -> dict[tuple[int, int], EventColumns]:
        """Sort the events into their lines, each in the order of the file."""
        if not self._blocks:
            return {}
        line = np.concatenate([lines for lines, _ in self._blocks])
        parts = [columns for _, columns in self._blocks]
        columns = EventColumns(
            np.concatenate([part.start_ns for part in parts]),
            np.concatenate([part.duration_ns for part in parts]),
            np.concatenate([part.name for part in parts]),
            np.concatenate([part.args for part in parts]),
            np.concatenate([part.args_size for part in parts]),
        )
        self._blocks.clear()
        ends = np.cumsum(np.bincount(line, minlength=len(self._line_indices)))[:-1]
        rows = np.split(np.argsort(line, kind="stable"), ends)
        return {place: columns.take(rows[index]) for place, index in self._line_indices.items()}

    def _read_device(self, begin: int, end: int) -> None:
        key, value = _read_entry(self.data, begin, end)
        if key not in self.devices:
            self._reserve(len(self.devices), PER_LINE, "devices")
        device = self.devices.setdefault(key, DeviceNames())
        for part in read_fields(self.data, *value):
            if part.number == 1 and part.wire == CHUNK:
                device.name = read_text(self.data, part)
            elif part.number == 3 and part.wire == CHUNK:
                resource, bounds = _read_entry(self.data, part.begin, part.end)
                if resource not in device.resources:
                    self._reserve(len(device.resources), PER_NAME, "threads")
                texts = (read_text(self.data, one) for one in read_fields(self.data, *bounds) if one.wire == CHUNK)
                device.resources[resource] = next(texts, "")
            elif part.number != 2:
                raise DamagedMessageError(begin)

    def _reserve(self, have: int, bytes_each: int, what: str) -> None:
        """Reserve memory for as many again whenever their number has doubled."""
        if have & (have - 1) == 0:
            self._budget.take(max(1, have), bytes_each, what)

    def _next_event(self, at: int) -> int:
        """Find the next position from which two events in a row read well, or the last one of the file does."""
        stop = len(self.data)
        while self._patience > 0:
            at = self.data.find(_EVENT_TAG, at)
            if at < 0:
                break
            after = self._try(at)
            if after == stop or (after > 0 and self._try(after) > 0):
                return at
            at += 1
        return stop

    def _try(self, at: int) -> int:
        """Return the position after the event at ``at``, or 0 if there is none; scanned bytes count against the limit."""
        after, looked = read_event(self._array, at, np.empty(EVENT_COLUMNS, np.int64))
        self._patience -= max(_TRY, looked - at)
        return max(0, after)


def read_args(data: bytes) -> dict[str, str]:
    """Return the arguments of an event from its bytes; what is damaged among them is left out."""
    found: dict[str, str] = {}
    try:
        for part in read_fields(data, 0, len(data)):
            if part.number == 11 and part.wire == CHUNK:
                texts = {one.number: read_text(data, one) for one in read_fields(data, part.begin, part.end)}
                found[texts.get(1, "")] = texts.get(2, "")
    except DamagedMessageError:
        pass
    return found


def _read_entry(data: bytes, begin: int, end: int) -> tuple[int, tuple[int, int]]:
    """Return key and bounds of the value of a map entry with a number as its key."""
    key, value = 0, (end, end)
    for part in read_fields(data, begin, end):
        if part.number == 1 and part.wire == VARINT:
            key = signed(part.value)
        elif part.number == 2 and part.wire == CHUNK:
            value = part.begin, part.end
        else:
            raise DamagedMessageError(begin)
    return key, value
