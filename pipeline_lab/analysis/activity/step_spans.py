"""Where each step begins and ends: on the host, and on the device that works on after it.

A host span (a marker, or the time from one request for input to the next) says when Python was in the step. Devices work
asynchronously: what was launched in the span may run on when it is over. So a step ends at the later of its span's end
and the end of the last device event whose launch lies in the span, and the next step begins there. In a loop that never
waits for the device this is the device's cadence.

The ``Steps`` line that TensorFlow writes for a device goes by group id instead, which stray kernels carry that were
launched after the span; it is used only where nothing marks the steps on the host.
"""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.intervals import IntArray, as_intervals
from pipeline_lab.analysis.activity.launches import Launches
from pipeline_lab.data_classes import dataclass


class StepRule(StrEnum):
    """What ends the steps; docs/numbers.md draws it.

    Attributes:
        note: What to add to the name of what marked them; empty where that name says all.
    """

    note: str

    def __new__(cls, key: str, note: str = "") -> "StepRule":
        member = str.__new__(cls, key)
        member._value_ = key
        member.note = note
        return member

    HOST_SPAN = "host_span"
    """Their span on the host; no device was still working for it, or none was recorded."""
    DEVICE_WORK = ("device_work", ", ending with the device work launched in them")
    """The last device event that was launched in their span, where that is later."""
    DEVICE_CADENCE = ("device_cadence", ", at the cadence of the device, for which the loop does not wait")
    """The same where the host is through with the next step by then."""
    NEXT_REQUEST = "next_request"
    """The next request for input, or the next call of JAX's training step; nothing marks them."""
    STEPS_LINE = "steps_line"
    """TensorFlow's ``Steps`` line of the device; nothing marks them on the host."""
    STORED = "stored"
    """TensorFlow's stored step table; the trace is gone."""


@dataclass(frozen=True, eq=False)
class StepSpans:
    """The steps of one trace.

    Attributes:
        rule: What ends them.
        kept: Which of the spans on the host they are, shape (n,).
        spans: Start and end of each, ordered, apart from each other, shape (n, 2).
        cut_off: Steps left out, or cut short, because the device still worked on them when the capture ended.
        known: Start and end of the time in which the trace shows all that the devices did, where that is not all of it.
    """

    rule: StepRule
    kept: IntArray
    spans: IntArray
    cut_off: int = 0
    known: tuple[int | None, int | None] = (None, None)


LATE_NS = 1_000_000
"""A device that takes longer to begin with what it was launched was busy, with work from before the capture if it shows
none. Launches take microseconds, and clocks of host and device are up to 0.14 ms apart."""
LOST_SHARE = 0.05
"""Part of a step's launches without an event on the device; with more of them its end is not known."""
LEAST_AFTER_FIRST = 3
LEAD_IN_SHARE = 0.05
"""Steps that have to remain for the first one to be left out, and the part of a step that its device has to begin later than
in the others: then it alone begins on an idle device, and its batch and launches take time that they do not take later."""
HALF = 0.5
"""Part of the steps after which the device works on while the next one is over on the host, from which its cadence holds;
part of the launches of a capture's only step that have to be seen for its times to be shown."""

BoolArray = NDArray[np.bool_]


def end_steps(rule: StepRule, host: IntArray, follows: BoolArray, launches: Launches) -> StepSpans:
    """Find where steps begin and end.

    Args:
        rule: What ends them where no device works on.
        host: Span of each on the host, ordered, apart from each other, shape (n, 2).
        follows: Whether each comes right after the one before it, so that it begins where that one ends, shape (n,).
        launches: Of the trace.

    Returns:
        The steps whose end is known; none where the devices had ended none of them when the capture did.
    """
    if not launches.count or not len(host) or rule is StepRule.STEPS_LINE:
        return StepSpans(rule, np.arange(len(host)), join_spans(host[:, 0], host[:, 1], follows))
    whole = _count_whole(host, launches)
    count = 1 if not whole and _is_mostly_seen(host, launches) else whole
    begin, end, done = host[:count, 0].copy(), host[:count, 1], launches.done_within(host[:count])
    known_from = _busy_until(launches)
    if count and known_from is not None:
        begin[0] = max(begin[0], known_from)
    if (done > end).any():
        end = np.maximum.accumulate(np.maximum(end, done))
        is_behind = end[: len(host) - 1] > host[1 : count + 1, 1]  # the host is through with the next step by then
        rule = StepRule.DEVICE_CADENCE if is_behind.sum() > HALF * len(is_behind) else StepRule.DEVICE_WORK
    spans = join_spans(begin, end, follows[:count])
    kept = np.flatnonzero(spans[:, 1] > spans[:, 0])
    is_ahead = known_from is None and rule in (StepRule.DEVICE_WORK, StepRule.DEVICE_CADENCE)
    if is_ahead and len(kept) > LEAST_AFTER_FIRST and _leads_in(spans, launches.begun_within(host[:count])):
        kept, known_from = kept[1:], int(spans[kept[1], 0])
    spans, cut_off = spans[kept], len(host) - whole
    known: tuple[int | None, int | None] = (known_from, None)
    if len(spans) and (rule is StepRule.DEVICE_CADENCE or cut_off or len(host) == 1):
        known = int(spans[0, 0]), int(spans[-1, 1])
    return StepSpans(rule, kept, spans, cut_off, known)


def join_spans(start: IntArray, end: IntArray, follows: BoolArray) -> IntArray:
    """Return each step from the end of the one before it; from its own start where none came right before."""
    before = np.concatenate((start[:1], end[:-1]))
    return as_intervals(np.where(follows, before, np.maximum(before, start)), end)


def _leads_in(spans: IntArray, begun: IntArray) -> bool:
    """Say whether the device begins with the first step later after its start than with any other after its."""
    lead = np.maximum(begun - spans[:, 0], 0)
    usual = float(np.median(spans[1:, 1] - spans[1:, 0]))
    return bool(lead[0] - lead[1:].max() > LEAD_IN_SHARE * usual)


def _count_whole(host: IntArray, launches: Launches) -> int:
    """Count the steps up to the last one whose work on the devices was recorded to its end."""
    first, after = launches.within(host)
    launched = after - first
    seen = np.concatenate(([0], np.cumsum(launches.is_seen)))
    lost = launched - (seen[after] - seen[first])
    ends_unseen = (launched > 0) & ~launches.is_seen[np.maximum(after - 1, 0)]
    whole = np.flatnonzero(~ends_unseen & (lost <= LOST_SHARE * launched))
    return int(whole[-1]) + 1 if len(whole) else 0


def _is_mostly_seen(host: IntArray, launches: Launches) -> bool:
    """Say whether enough of a capture's only step was recorded to show it, as far as it goes."""
    first, after = launches.within(host)
    return len(host) == 1 and bool(launches.is_seen[first[0] : after[0]].mean() >= HALF)


def _busy_until(launches: Launches) -> int | None:
    """Return when the devices began with what the capture saw being launched, if earlier work kept them busy till then."""
    if not launches.is_seen.any():
        return None
    first = int(np.argmin(np.where(launches.is_seen, launches.begun_ns, np.iinfo(np.int64).max)))
    begun = int(launches.begun_ns[first])
    return begun if begun - int(launches.end_ns[first]) > LATE_NS else None
