"""Scan a serialised `Trace` of trace_events.proto into columns, over damage if need be.

The message is flat: `Trace{devices=1 (map), trace_events=4}`, `Device{name=1, device_id=2, resources=3 (map)}`,
`Resource{name=1, resource_id=2}`, `TraceEvent{device_id=1, resource_id=2, name=3, timestamp_ps=9, duration_ps=10,
args=11 (map)}`. Nothing else ever came, so any other field is damage; the scan then looks for the next event that
reads well.
"""

from array import array
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline_lab.trace.budget import PER_LINE, PER_NAME, Budget
from pipeline_lab.trace.message import (
    CHUNK,
    VARINT,
    DamagedMessageError,
    read_field,
    read_fields,
    read_text,
    read_varint,
    signed,
)

PER_EVENT = 40
"""Bytes that the columns of one event take, with room to grow."""
LONG_NAME = "long name"
"""The argument that holds the full name where TensorFlow 2.x shortened it to what follows the last colon."""

_EVENT_TAG = b"\x22"
_DEVICE, _RESOURCE, _NAME, _TIMESTAMP, _DURATION, _ARGUMENT = 0x08, 0x10, 0x1A, 0x48, 0x50, 0x5A
_PATIENCE = 4
"""Bytes that may be looked at per byte of the file in search of events behind damage."""
_TRY = 16
MEMO = 65_536
"""Distinct names or labels that are remembered at a time."""


class Event(NamedTuple):
    """One TraceEvent; positions are bytes of the file.

    Attributes:
        name: Bounds of the name.
        args: Where its arguments begin; they last to ``end``.
    """

    device: int
    resource: int
    start_ps: int
    duration_ps: int
    name: tuple[int, int]
    args: int
    end: int


@dataclass(eq=False)
class EventColumns:
    """The events of one resource while they grow.

    Attributes:
        start_ns, duration_ns: Since the start of the session.
        name: Index in the scan's names.
        args, args_size: Position and length of the event's arguments.
    """

    start_ns: "array[int]" = field(default_factory=lambda: array("q"))
    duration_ns: "array[int]" = field(default_factory=lambda: array("q"))
    name: "array[int]" = field(default_factory=lambda: array("i"))
    args: "array[int]" = field(default_factory=lambda: array("q"))
    args_size: "array[int]" = field(default_factory=lambda: array("i"))


@dataclass
class DeviceNames:
    """Name of a device, and of its resources by their ids."""

    name: str = ""
    resources: dict[int, str] = field(default_factory=dict)


class Scan:
    """Everything that one file holds.

    Attributes:
        data: The file.
        devices: By device id.
        lines: Events by device id and resource id.
        names: Full names of events; `display_names` holds what TensorFlow shows for them.
        events: Number of events.
        bytes_lost: Bytes that made no sense.
        first_damage: Where the first of them lies, or None.
    """

    def __init__(self, data: bytes, budget: Budget) -> None:
        self.data = data
        self.devices: dict[int, DeviceNames] = {}
        self.lines: dict[tuple[int, int], EventColumns] = {}
        self.names: list[str] = []
        self.display_names: list[str] = []
        self.events = 0
        self.bytes_lost = 0
        self.first_damage: int | None = None
        self._budget = budget
        self._indices: dict[tuple[str, str], int] = {}
        self._memo: dict[tuple[bytes, bytes], int] = {}
        self._patience = _PATIENCE * len(data)
        self._run()

    def _run(self) -> None:
        at, stop = 0, len(self.data)
        while at < stop:
            try:
                at = self._read(at)
            except DamagedMessageError:
                after = self._next_event(at + 1)
                self.bytes_lost += after - at
                self.first_damage = at if self.first_damage is None else self.first_damage
                at = after

    def _read(self, at: int) -> int:
        """Read the device or event at ``at``; return where the next one begins."""
        part = read_field(self.data, at, len(self.data))
        if part.wire != CHUNK or part.number not in (1, 4):
            raise DamagedMessageError(at)
        if part.number == 4:
            self._add(read_event(self.data, part.begin, part.end))
        else:
            self._read_device(part.begin, part.end)
        return part.end

    def _add(self, event: Event) -> None:
        self._reserve(self.events, PER_EVENT, "events")
        self.events += 1
        line = self.lines.get((event.device, event.resource))
        if line is None:
            self._reserve(len(self.lines), PER_LINE, "threads")
            line = self.lines[event.device, event.resource] = EventColumns()
        start_ns = event.start_ps // 1000
        line.start_ns.append(start_ns)
        line.duration_ns.append(max(0, (event.start_ps + event.duration_ps) // 1000 - start_ns))
        line.name.append(self._index(event))
        line.args.append(event.args)
        line.args_size.append(event.end - event.args)

    def _index(self, event: Event) -> int:
        """Return the index of an event's name; the full name may be among its arguments."""
        key = self.data[event.name[0] : event.name[1]], self.data[event.args : event.end]
        index = self._memo.get(key)
        if index is None:
            shown = key[0].decode("utf-8", "replace")
            index = self._intern(read_args(key[1]).get(LONG_NAME, shown), shown)
            if len(self._memo) >= MEMO:
                self._memo.clear()
            self._memo[key] = index
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
        """Return the position behind the event at ``at``, or 0 if there is none; each byte looked at costs patience."""
        try:
            part = read_field(self.data, at, len(self.data))
            if part.number != 4 or part.wire != CHUNK:
                return 0
            read_event(self.data, part.begin, part.end)
        except DamagedMessageError as damage:
            self._patience -= max(_TRY, damage.position - at)
            return 0
        self._patience -= part.end - at
        return part.end


def read_event(data: bytes, begin: int, end: int) -> Event:
    """Read the TraceEvent at ``[begin, end)``.

    Raises:
        DamagedMessageError: It holds a field that a TraceEvent has not, or no name.
    """
    numbers = {_DEVICE: 0, _RESOURCE: 0, _TIMESTAMP: 0, _DURATION: 0}
    at, name, args = begin, None, end
    while at < end:
        tag = data[at]
        value, after = read_varint(data, at + 1, end)
        if tag in numbers:
            numbers[tag] = value
        elif tag in (_NAME, _ARGUMENT):
            if tag == _NAME:
                name = (after, after + value)
            else:
                args = min(args, at)
            after += value
            if after > end:
                raise DamagedMessageError(at)
        else:
            raise DamagedMessageError(at)
        at = after
    if name is None:
        raise DamagedMessageError(begin)
    start, duration = signed(numbers[_TIMESTAMP]), max(0, signed(numbers[_DURATION]))
    return Event(numbers[_DEVICE], numbers[_RESOURCE], start, duration, name, args, end)


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
            key = part.value
        elif part.number == 2 and part.wire == CHUNK:
            value = part.begin, part.end
        else:
            raise DamagedMessageError(begin)
    return key, value
