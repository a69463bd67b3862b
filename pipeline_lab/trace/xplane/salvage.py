"""Read what is left of a damaged XSpace: cut off, bits flipped, filled with zeros, mangled as text.

Once a length is wrong, the nesting is lost. So the file is read as a flat sequence of tokens: the head of a plane or a
line, an event, a name, a stat. Each is recognized by its shape; anything else is skipped byte by byte.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pipeline_lab.data_classes import dataclass
from pipeline_lab.trace.compiled import compiled
from pipeline_lab.trace.file_memory import PER_LINE, PER_NAME, MemoryBudget
from pipeline_lab.trace.schema import IntArray
from pipeline_lab.trace.wire import CHUNK, DAMAGED, VARINT, ByteArray, Int64Array, read_field, read_varint
from pipeline_lab.trace.xplane import plane_wire
from pipeline_lab.trace.xplane.layout import (
    ALL,
    LineBytes,
    PlaneBytes,
    SpaceBytes,
    build_line,
    build_plane,
    read_messages,
)
from pipeline_lab.trace.xplane.plane_wire import (
    ABSENT,
    NAME_BEGIN,
    NAME_BODY,
    NAME_BODY_END,
    NAME_COLUMNS,
    NAME_END,
    read_entry,
    read_name,
    read_stat,
)
from pipeline_lab.trace.xplane.stats import text
from pipeline_lab.units import format_bytes

MAX_TEXT = 4096
MAX_FIELDS = 64
MAX_TAIL = 1 << 20
"""Bytes of all errors, warnings and host names together, which end a file."""
CLOSED, OPEN, OUTSIDE = -1, -2, 1 << 62

# What `find_tokens` marks, and the columns of a mark: begin and stop are those of the content (of the head only, for
# planes and lines), and ``FIRST_EVENT`` is how many events precede it.
PLANE, LINE, EVENT_NAME, STAT_NAME, PLANE_STAT, HOST_NAME, ERROR, WARNING, EVENT, NOTHING = range(10)
KIND, BEGIN, STOP, FIRST_EVENT, MARK_COLUMNS = range(5)

# What `find_tokens` tells of the whole file.
MARKS, EVENTS, LOST, FIRST_LOST, LAST_LOST, PLANE_END, SUMMARY_COLUMNS = range(7)


@compiled
def is_text(data: ByteArray, begin: int, stop: int) -> bool:
    """Say whether bytes could be a name: some, not too many, no control characters."""
    if not 0 < stop - begin <= MAX_TEXT:
        return False
    for at in range(begin, stop):  # noqa: SIM110 - the compiler knows no generators
        if data[at] < 0x20 or data[at] == 0x7F:
            return False
    return True


@compiled
def is_message(data: ByteArray, begin: int, stop: int) -> bool:
    """Say whether bytes could be what the profiler complains about: text, of several lines maybe."""
    if begin == stop:
        return False
    for at in range(begin, stop):  # noqa: SIM110 - the compiler knows no generators
        if (data[at] < 0x20 and data[at] not in (0x09, 0x0A, 0x0D)) or data[at] == 0x7F:
            return False
    return True


@compiled
def is_tail(data: ByteArray, at: int, stop: int) -> bool:
    """Say whether only texts of the XSpace itself follow: its errors, warnings and host names, which stand at its end."""
    fields = 0
    if stop - at > MAX_TAIL:
        return False
    while at < stop and fields < MAX_FIELDS:
        if data[at] not in (0x12, 0x1A, 0x22):
            return False
        _, _, value, after = read_field(data, at, stop)
        if after < 0 or not is_message(data, after - value, after):
            return False
        fields += 1
        at = after
    return at == stop


@compiled
def is_stat(data: ByteArray, begin: int, stop: int) -> bool:
    """Say whether bytes are an XStat: an id and one value."""
    metadata_id, kind, _, _ = read_stat(data, begin, stop)
    at, fields = begin, 0
    while 0 <= at < stop and fields < 3:
        _, _, _, at = read_field(data, at, stop)
        fields += 1
    return at == stop and fields <= 2 and metadata_id > 0 and kind != ABSENT


@compiled
def is_event(data: ByteArray, begin: int, stop: int) -> bool:
    """Say whether bytes are an XEvent: an id, a place in time or a count, and sound stats.

    The place in time tells it from an XStat with an unsigned value. (It is written even when it is 0.)
    """
    at, seen, fields = begin, 0, 0
    while at < stop and fields < MAX_FIELDS:
        number, wire, value, after = read_field(data, at, stop)
        if after < 0 or number > 5 or (wire != CHUNK if number == 4 else wire != VARINT):
            return False
        if number == 4 and not is_stat(data, after - value, after):
            return False
        seen |= 1 << number
        fields += 1
        at = after
    return at == stop and seen & 0b10 != 0 and seen & 0b100100 != 0


@compiled
def is_entry(data: ByteArray, begin: int, stop: int, out: Int64Array) -> bool:
    """Say whether bytes are an entry of a metadata map, {key, value {name, …}}; it is read into ``out``."""
    if begin == stop or data[begin] != 0x08 or read_entry(data, begin, stop, out) != stop:
        return False
    body = out[NAME_BODY]
    if out[NAME_BODY_END] != stop or body == stop or read_name(data, out) != DAMAGED:
        return False
    return bool(data[body] == 0x08 or out[NAME_END] > out[NAME_BEGIN])


@compiled
def read_header(data: ByteArray, at: int, stop: int, last: int) -> tuple[bool, int]:
    """Read the scalars (numbers up to ``last``) and names that a plane or line begins with.

    Returns:
        Whether there is a name, and the position after them.
    """
    named = False
    while at < stop:
        number, wire, value, after = read_field(data, at, stop)
        if after < 0 or number > last or wire != (CHUNK if number == 2 else VARINT):
            break
        if number == 2:
            if named or not is_text(data, after - value, after):
                break
            named = True
        at = after
    return named, at


@compiled
def head_at(data: ByteArray, at: int, stop: int) -> tuple[int, int, int]:
    """Recognize the head of a plane or line at ``at``.

    Returns:
        Where its content begins and claims to end, and the position after the head (`DAMAGED` if there is none).
    """
    last = 2 if data[at] == 0x0A else 3
    length, begin = read_varint(data, at + 1, stop)
    if begin < 0 or length <= 0:
        return 0, 0, DAMAGED
    end = min(begin + length, OUTSIDE) if length < OUTSIDE else OUTSIDE
    named, after = read_header(data, begin, min(end, stop), last)
    return begin, end, after if named else DAMAGED


@compiled
def token_at(data: ByteArray, at: int, stop: int, entry: Int64Array) -> tuple[int, int, int, int]:
    """Recognize the token at ``at``: its kind, the bounds of its content and the position after it.

    Kinds besides the marks: `EVENT`, and `NOTHING` for fields that are not needed. The position is `DAMAGED` if there is
    no token. ``entry`` is room for an entry of a map, shape (NAME_COLUMNS,).
    """
    tag = data[at]
    if tag in (0x12, 0x1A) and is_tail(data, at, stop):
        _, _, value, after = read_field(data, at, stop)
        return (ERROR if tag == 0x12 else WARNING), after - value, after, after
    if tag in (0x0A, 0x1A):
        begin, end, after = head_at(data, at, stop)
        return (PLANE if tag == 0x0A else LINE), begin, end, after
    if tag not in (0x22, 0x2A, 0x32, 0x48, 0x50, 0x5A):
        return NOTHING, 0, 0, DAMAGED
    _, wire, value, after = read_field(data, at, stop)
    if after < 0 or wire == VARINT:
        return NOTHING, 0, 0, after
    begin = after - value
    kind = NOTHING
    if tag == 0x22 and is_event(data, begin, after):
        kind = EVENT
    elif tag in (0x22, 0x2A) and is_entry(data, begin, after, entry):
        kind = EVENT_NAME if tag == 0x22 else STAT_NAME
    elif tag == 0x22 and after == stop and is_text(data, begin, after):
        kind = HOST_NAME
    elif tag == 0x32 and is_stat(data, begin, after):
        kind = PLANE_STAT
    elif tag != 0x5A or not is_text(data, begin, after):
        return NOTHING, 0, 0, DAMAGED
    return kind, begin, after, after


@compiled
def find_tokens(data: ByteArray, marks: Int64Array, events: Int64Array, summary: Int64Array, entry: Int64Array) -> None:
    """Find all tokens of a damaged file; called with empty arrays it only counts.

    A plane or line ends where it says, if tokens meet there; what follows goes to a nameless one.

    Args:
        data: The file.
        marks: Filled with one row per token other than an event, shape (n, MARK_COLUMNS); the head of a nameless plane
            or line has no bytes.
        events: Filled with the position of each event.
        summary: Filled with the counts of both, the bytes skipped, the first and last of them (-1 if none), and
            where the last plane claims to end.
        entry: Room for an entry of a map, shape (NAME_COLUMNS,).
    """
    summary[:] = 0
    summary[FIRST_LOST] = summary[LAST_LOST] = -1
    at, stop = 0, len(data)
    ends = (0, 0)
    while at < stop:
        if at == ends[0]:
            ends = (CLOSED, CLOSED)
        elif at == ends[1]:
            ends = (ends[0], CLOSED)
        kind, begin, end, after = token_at(data, at, stop, entry)
        if after < 0:
            summary[LOST] += 1
            summary[LAST_LOST] = at
            if summary[FIRST_LOST] < 0:
                summary[FIRST_LOST] = at
            after = at + 1
        elif kind != NOTHING:
            ends = put_token(marks, events, summary, ends, (kind, begin, end), (at, after))
        at = after


@compiled
def put_token(
    marks: Int64Array,
    events: Int64Array,
    summary: Int64Array,
    ends: tuple[int, int],
    token: tuple[int, int, int],
    place: tuple[int, int],
) -> tuple[int, int]:
    """Append a token, after a nameless plane or line if it belongs to none; return the ends of both."""
    plane_end, line_end = ends
    kind, begin, end = token
    at, after = place
    if plane_end == CLOSED and kind not in (PLANE, HOST_NAME, ERROR, WARNING):
        put_mark(marks, summary, PLANE, at, at)
        plane_end = OPEN
    if kind == PLANE:
        put_mark(marks, summary, PLANE, begin, after)
        summary[PLANE_END] = end
        return end, CLOSED
    if kind == LINE:
        put_mark(marks, summary, LINE, begin, after)
        return plane_end, end
    if kind != EVENT:
        put_mark(marks, summary, kind, begin, end)
        return plane_end, line_end
    if line_end == CLOSED:
        put_mark(marks, summary, LINE, at, at)
        line_end = OPEN
    if summary[EVENTS] < len(events):
        events[summary[EVENTS]] = at
    summary[EVENTS] += 1
    return plane_end, line_end


@compiled
def put_mark(marks: Int64Array, summary: Int64Array, kind: int, begin: int, stop: int) -> None:
    """Append a mark if there is room, and count it."""
    row = summary[MARKS]
    if row < len(marks):
        marks[row, KIND], marks[row, BEGIN], marks[row, STOP] = kind, begin, stop
        marks[row, FIRST_EVENT] = summary[EVENTS]
    summary[MARKS] = row + 1


POSITION = 8
"""Bytes to store an event's position."""
TEXT_DAMAGE = b"\xef\xbf\xbd"
"""What programs write in place of bytes that are not text."""
SAMPLE = 1 << 20
"""Bytes to look at for the kind of damage."""


@dataclass(frozen=True)
class Loss:
    """What could not be read.

    Attributes:
        skipped: Invalid bytes.
        first, last: Positions of the first and the last of them, -1 if there is none.
        missing: Bytes that the last plane claims beyond the end of a file that is sound up to there.
    """

    skipped: int
    first: int
    last: int
    missing: int

    def reason(self, data: ByteArray) -> str:
        """Say in one sentence where the damage is and of what kind."""
        size, read = len(data), format_bytes(len(data) - self.skipped)
        if self.missing:
            return f"The file is cut off: {read} of at least {format_bytes(size + self.missing)} were read."
        if self.is_tail(size):
            return f"The file is cut off: {read} were read; how much is missing is not known."
        where = f"between byte {self.first:,} and byte {self.last:,}"
        lost = data[self.first : self.last + 1][:SAMPLE]
        if lost.tobytes().count(TEXT_DAMAGE) * 9 > len(lost):
            return f"A program that handles text has replaced bytes {where}; copy the file in binary mode."
        kind = "are zeros" if np.count_nonzero(lost) * 10 < len(lost) else "are damaged"
        return f"{format_bytes(self.skipped)} of {format_bytes(size)} {where} {kind}; the rest was read."

    def is_tail(self, size: int) -> bool:
        """Say whether what was lost is the end of the file: of a record that is cut off some fields can still be recognized."""
        return self.last == size - 1 and 2 * self.skipped > self.last - self.first


def salvage_space(data: ByteArray, budget: MemoryBudget) -> tuple[SpaceBytes, Loss]:
    """Find what can still be recognized in a damaged file."""
    summary, entry = np.zeros(SUMMARY_COLUMNS, np.int64), np.zeros(NAME_COLUMNS, np.int64)
    marks, events = np.zeros((0, MARK_COLUMNS), np.int64), np.zeros(0, np.int64)
    find_tokens(data, marks, events, summary, entry)
    budget.take(int(summary[MARKS]), PER_NAME, "names")
    budget.take(int(summary[EVENTS]), POSITION, "events")
    marks = np.zeros((int(summary[MARKS]), MARK_COLUMNS), np.int64)
    events = np.zeros(int(summary[EVENTS]), np.int64)
    find_tokens(data, marks, events, summary, entry)
    hosts = tuple(text(data, begin, stop) for begin, stop in _select(marks, HOST_NAME).tolist())
    errors, warnings = (read_messages(data, _select(marks, kind)) for kind in (ERROR, WARNING))
    planes = tuple(_read_planes(data, marks, events, budget))
    return SpaceBytes(planes, hosts, errors, warnings), _loss(summary, len(data))


def _loss(summary: IntArray, size: int) -> Loss:
    skipped, first, last = (int(summary[k]) for k in (LOST, FIRST_LOST, LAST_LOST))
    loss = Loss(skipped, first, last, max(0, int(summary[PLANE_END]) - size))
    return loss if skipped == 0 or loss.is_tail(size) else replace(loss, missing=0)


def _read_planes(data: ByteArray, marks: IntArray, events: IntArray, budget: MemoryBudget) -> Iterator[PlaneBytes]:
    starts = np.flatnonzero(marks[:, KIND] == PLANE)
    for begin, end in zip(starts, np.append(starts, len(marks))[1:], strict=True):
        stop = marks[end, FIRST_EVENT] if end < len(marks) else len(events)
        inside = marks[begin + 1 : end]
        bounds = {kind: _select(inside, kind) for kind in (EVENT_NAME, STAT_NAME, PLANE_STAT)}
        plane = build_plane(
            data,
            name=_read_head(data, marks[begin]).name,
            lines=tuple(_read_lines(data, inside, events[:stop], budget)),
            event_names=bounds[EVENT_NAME],
            stat_names=bounds[STAT_NAME],
            stats=bounds[PLANE_STAT],
        )
        yield plane if plane.name else _named_by_content(plane)


def _read_lines(data: ByteArray, marks: IntArray, events: IntArray, budget: MemoryBudget) -> Iterator[LineBytes]:
    """Read the lines of one plane; a nameless one gets the time base of the line before it."""
    heads = marks[marks[:, KIND] == LINE]
    budget.take(len(heads), PER_LINE, "lines")
    ends = np.append(heads[:, FIRST_EVENT], len(events))[1:]
    timestamp_ns = 0
    for head, end in zip(heads, ends, strict=True):
        line = _read_head(data, head)
        timestamp_ns = line.timestamp_ns if line.name else timestamp_ns
        offsets = events[head[FIRST_EVENT] : end]
        yield LineBytes(line.id, line.name, timestamp_ns, 0, len(data), len(offsets), offsets)


def _read_head(data: ByteArray, mark: IntArray) -> LineBytes:
    """Read id, name and time base from the head of a line (or of a plane, which begins alike)."""
    header = np.zeros(plane_wire.LINE_COLUMNS, np.int64)
    begin, stop = _bounds(mark)
    plane_wire.read_line(data, begin, stop, ALL, header)
    return build_line(data, header, begin, stop)


def _named_by_content(plane: PlaneBytes) -> PlaneBytes:
    """Name a plane whose head is lost: C++ names such as ``IteratorGetNextOp::DoCompute`` occur on hosts."""
    is_host = any("::" in name for name in plane.event_names.names)
    name = "/host:CPU" if is_host else ""
    return PlaneBytes(name, plane.lines, plane.event_names, plane.stat_names, plane.stats)


def _select(marks: IntArray, kind: int) -> IntArray:
    found: IntArray = marks[marks[:, KIND] == kind][:, [BEGIN, STOP]]
    return found


def _bounds(mark: IntArray) -> tuple[int, int]:
    return int(mark[BEGIN]), int(mark[STOP])
