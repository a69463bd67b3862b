"""Read what is left of a damaged XSpace: cut off, bits flipped, filled with zeros, mangled as text."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeline_lab.trace import damage, plane_wire
from pipeline_lab.trace.budget import PER_LINE, PER_NAME, Budget
from pipeline_lab.trace.layout import LineBytes, PlaneBytes, SpaceBytes, build_line, build_plane
from pipeline_lab.trace.schema import IntArray
from pipeline_lab.trace.stats import text
from pipeline_lab.trace.wire import ByteArray
from pipeline_lab.units import format_bytes

POSITION = 8
"""Bytes to remember where an event stands."""
TEXT_DAMAGE = b"\xef\xbf\xbd"
"""What programs write in place of bytes that are no text."""
SAMPLE = 1 << 20
"""Bytes to look at for the kind of damage."""


@dataclass(frozen=True)
class Loss:
    """What could not be read.

    Attributes:
        skipped: Bytes that make no sense.
        first, last: Where the first and the last of them stand, -1 if there is none.
        missing: Bytes that the last plane claims beyond the end of a file that is sound up to there.
    """

    skipped: int
    first: int
    last: int
    missing: int

    def reason(self, data: ByteArray) -> str:
        """Say in one sentence where the damage is and of what kind."""
        if self.missing:
            return f"The file ends {format_bytes(self.missing)} too early."
        if self.last == len(data) - 1 and self.skipped == self.last - self.first + 1:
            return f"The file is cut off; its last {format_bytes(self.skipped)} are of no use."
        where = f"between byte {self.first:,} and byte {self.last:,}"
        lost = data[self.first : self.last + 1][:SAMPLE]
        if lost.tobytes().count(TEXT_DAMAGE) * 9 > len(lost):
            return f"A program that handles text has replaced bytes {where}; copy the file in binary mode."
        kind = "are zeros" if np.count_nonzero(lost) * 10 < len(lost) else "make no sense"
        return f"{format_bytes(self.skipped)} {where} {kind}."


def salvage_space(data: ByteArray, budget: Budget) -> tuple[SpaceBytes, Loss]:
    """Find whatever can still be told apart in a damaged file."""
    summary = np.zeros(damage.SUMMARY_COLUMNS, np.int64)
    marks, events = np.zeros((0, damage.MARK_COLUMNS), np.int64), np.zeros(0, np.int64)
    damage.find_tokens(data, marks, events, summary)
    budget.take(int(summary[damage.MARKS]), PER_NAME, "names")
    budget.take(int(summary[damage.EVENTS]), POSITION, "events")
    marks = np.zeros((int(summary[damage.MARKS]), damage.MARK_COLUMNS), np.int64)
    events = np.zeros(int(summary[damage.EVENTS]), np.int64)
    damage.find_tokens(data, marks, events, summary)
    hosts = marks[marks[:, damage.KIND] == damage.HOST_NAME]
    planes = tuple(_read_planes(data, marks, events, budget))
    return SpaceBytes(planes, tuple(text(data, *_bounds(row)) for row in hosts)), _loss(summary, len(data))


def _loss(summary: IntArray, size: int) -> Loss:
    skipped, first, last = (int(summary[k]) for k in (damage.LOST, damage.FIRST_LOST, damage.LAST_LOST))
    is_tail = skipped == 0 or (last == size - 1 and skipped == last - first + 1)
    return Loss(skipped, first, last, max(0, int(summary[damage.PLANE_END]) - size) if is_tail else 0)


def _read_planes(data: ByteArray, marks: IntArray, events: IntArray, budget: Budget) -> Iterator[PlaneBytes]:
    starts = np.flatnonzero(marks[:, damage.KIND] == damage.PLANE)
    for begin, end in zip(starts, np.append(starts, len(marks))[1:], strict=True):
        stop = marks[end, damage.FIRST_EVENT] if end < len(marks) else len(events)
        inside = marks[begin + 1 : end]
        bounds = {kind: _select(inside, kind) for kind in (damage.EVENT_NAME, damage.STAT_NAME, damage.PLANE_STAT)}
        plane = build_plane(
            data,
            name=_read_head(data, marks[begin]).name,
            lines=tuple(_read_lines(data, inside, events[:stop], budget)),
            event_names=bounds[damage.EVENT_NAME],
            stat_names=bounds[damage.STAT_NAME],
            stats=bounds[damage.PLANE_STAT],
        )
        yield plane if plane.name else _named_by_content(plane)


def _read_lines(data: ByteArray, marks: IntArray, events: IntArray, budget: Budget) -> Iterator[LineBytes]:
    """Read the lines of one plane; a nameless one gets the time base of the line before it."""
    heads = marks[marks[:, damage.KIND] == damage.LINE]
    budget.take(len(heads), PER_LINE, "lines")
    ends = np.append(heads[:, damage.FIRST_EVENT], len(events))[1:]
    timestamp_ns = 0
    for head, end in zip(heads, ends, strict=True):
        line = _read_head(data, head)
        timestamp_ns = line.timestamp_ns if line.name else timestamp_ns
        offsets = events[head[damage.FIRST_EVENT] : end]
        yield LineBytes(line.id, line.name, timestamp_ns, 0, len(data), len(offsets), offsets)


def _read_head(data: ByteArray, mark: IntArray) -> LineBytes:
    """Read id, name and time base from the head of a line (or of a plane, which begins alike)."""
    header = np.zeros(plane_wire.LINE_COLUMNS, np.int64)
    begin, stop = _bounds(mark)
    plane_wire.read_line(data, begin, stop, header)
    return build_line(data, header, begin, stop)


def _named_by_content(plane: PlaneBytes) -> PlaneBytes:
    """Name a plane whose head is lost: C++ names such as ``IteratorGetNextOp::DoCompute`` occur on hosts."""
    is_host = any("::" in name for name in plane.event_names.names)
    name = "/host:CPU" if is_host else ""
    return PlaneBytes(name, plane.lines, plane.event_names, plane.stat_names, plane.stats)


def _select(marks: IntArray, kind: int) -> IntArray:
    found: IntArray = marks[marks[:, damage.KIND] == kind][:, [damage.BEGIN, damage.STOP]]
    return found


def _bounds(mark: IntArray) -> tuple[int, int]:
    return int(mark[damage.BEGIN]), int(mark[damage.STOP])
