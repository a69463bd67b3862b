"""Leave out events at times that no recording has: damage that the format cannot tell, such as a flipped bit of a time.

One event a month away from the others would make a month of idle time, and one near the limits of 64 bits would make sums
overflow. The time of the recording is where most events lie, with a margin that no sound capture needs.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.data_classes import dataclass
from pipeline_lab.trace.parallel import on_all_cores
from pipeline_lab.trace.schema import BoolArray, IntArray, Line, Plane, Salvage, StatSource, Trace
from pipeline_lab.units import NS_PER_S, format_count

MARGIN_NS = 60 * NS_PER_S
MARGIN_SPANS = 10
"""An event lies at most a minute from most of the others, or this many times the span in which these lie."""
LONGEST_SESSION_NS = 86_400 * NS_PER_S
"""Nobody profiles for a day; a session that claims more is damaged."""
_OUTER_PERCENT = 1
"""Of the events, which may lie outside of that span at either side."""
_SAMPLED = 1 << 17
"""Events to look at for that span."""
_LIMIT_NS = 1 << 61
"""Sums of times beyond this may overflow."""


@dataclass(frozen=True)
class SomeStats(StatSource):
    """The stats of some events of a line: ``kept`` are their rows there."""

    stats: StatSource
    kept: IntArray

    def ints(self, rows: IntArray, stat: str) -> tuple[IntArray, BoolArray]:
        return self.stats.ints(self.kept[rows], stat)

    def floats(self, rows: IntArray, stat: str) -> NDArray[np.float64]:
        return self.stats.floats(self.kept[rows], stat)

    def texts(self, rows: IntArray, stat: str) -> list[str | None]:
        return self.stats.texts(self.kept[rows], stat)

    def each_ints(self, rows: IntArray, stats: Sequence[str]) -> list[tuple[IntArray, BoolArray]]:
        return self.stats.each_ints(self.kept[rows], stats)

    def each_texts(self, rows: IntArray, stats: Sequence[str]) -> list[list[str | None]]:
        return self.stats.each_texts(self.kept[rows], stats)


def leave_out_impossible(trace: Trace) -> Trace:
    """Return a trace without events outside the time of the recording; a sound one is returned as it is.

    The trace's ``salvage`` says what was left out.
    """
    lines = [line for plane in trace.planes for line in plane.lines if line.count]
    if not lines:
        return trace
    reaches = on_all_cores(lambda line: line.reach, lines, trace.event_count)
    first_ns, last_ns = min(one.first_start_ns for one in reaches), max(one.last_start_ns for one in reaches)
    shortest, longest = min(one.shortest_ns for one in reaches), max(one.longest_ns for one in reaches)
    moments = [first_ns, last_ns, *(moment for moment in (trace.start_ns, trace.stop_ns) if moment is not None)]
    if max(moments) - min(moments) <= MARGIN_NS and 0 <= shortest <= longest <= MARGIN_NS:
        return trace  # so close to each other that none has to be looked at
    step = max(1, sum(line.count for line in lines) // _SAMPLED)
    sample = np.concatenate([line.start_ns[::step] for line in lines])
    first, last = map(int, np.percentile(sample, [_OUTER_PERCENT, 100 - _OUTER_PERCENT], method="nearest"))
    margin = max(MARGIN_NS, MARGIN_SPANS * (last - first))
    earliest, latest = _with_session(first - margin, last + margin, trace.start_ns, trace.stop_ns)
    if earliest <= min(moments) and shortest >= 0 and max(moments) <= latest and last_ns + longest <= latest:
        return trace
    kept = replace(trace, planes=tuple(_cut(plane, earliest, latest) for plane in trace.planes))
    if any(moment is not None and not earliest <= moment <= latest for moment in (trace.start_ns, trace.stop_ns)):
        kept = replace(kept, start_ns=None, stop_ns=None)
    lost = trace.event_count - kept.event_count
    if not lost:
        return kept
    before = [] if trace.salvage is None else [trace.salvage.reason]
    outside = f"{format_count(lost)} of its events lie outside the time of the recording and were left out."
    bytes_lost = 0 if trace.salvage is None else trace.salvage.bytes_lost
    return replace(kept, salvage=Salvage(bytes_lost, kept.event_count, " ".join([*before, outside])))


def _with_session(earliest: int, latest: int, start_ns: int | None, stop_ns: int | None) -> tuple[int, int]:
    """Extend a span by that of the session, where the file says when that was, the two meet, and it is not damaged itself."""
    if start_ns is None or stop_ns is None or not 0 <= stop_ns - start_ns <= LONGEST_SESSION_NS:
        return earliest, latest
    if stop_ns < earliest or start_ns > latest:
        return earliest, latest
    return min(earliest, start_ns), max(latest, stop_ns)


def _cut(plane: Plane, earliest: int, latest: int) -> Plane:
    return replace(plane, lines=tuple(_cut_line(line, earliest, latest) for line in plane.lines))


def _cut_line(line: Line, earliest: int, latest: int) -> Line:
    start, duration = line.start_ns, line.duration_ns
    inside = (start >= earliest) & (start <= latest) & (duration >= 0) & (duration <= _LIMIT_NS)
    inside[inside] = start[inside] + duration[inside] <= latest
    if inside.all():
        return line
    rows = np.flatnonzero(inside)
    return Line(line.id, line.name, start[rows], duration[rows], line.name_index[rows], SomeStats(line.stats, rows))
