"""What a stretch of time went into: each device's work and idle time by cause, the steps and the waits."""

import numpy as np

from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.timeline.index import Index
from pipeline_lab.analysis.timeline.lanes import CLASSES, LaneKind
from pipeline_lab.analysis.timeline.view import step_number
from pipeline_lab.data_classes import dataclass

Span = tuple[int, int]


@dataclass(frozen=True)
class ClassTime:
    """Time that events of one class take in a stretch of time.

    Attributes:
        event_class: Index into the classes.
        time_ns: Clipped to the stretch, added up over lanes.
        events: How many lie in it, in whole or in part.
    """

    event_class: int
    time_ns: int
    events: int


@dataclass(frozen=True)
class RangeSums:
    """Sums over a stretch of time.

    Attributes:
        span_ns: How long it is.
        recorded_ns: How much of that the profiler was on.
        devices: How many devices there are.
        by_cause: What all devices did, work and idle time by cause, the longest first; it adds up to ``recorded_ns`` for
            each device.
        waits: Input waits of all hosts: those that left the device idle, and those that it did not notice.
        steps: The first and the last step that it touches, and how many; None where there is none.
    """

    span_ns: int
    recorded_ns: int
    devices: int
    by_cause: tuple[ClassTime, ...]
    waits: tuple[ClassTime, ...]
    steps: tuple[str, str, int] | None


def sum_range(index: Index, span: Span) -> RangeSums:
    """Add up what lies in a stretch of time.

    Args:
        index: The timeline.
        span: Start and end, ns.
    """
    devices = index.lanes_of(LaneKind.DEVICE)
    windows = _by_class(index, index.lanes_of(LaneKind.WINDOWS), span)
    off_ns = sum(one.time_ns for one in windows if _is_off(one))
    return RangeSums(
        span[1] - span[0],
        span[1] - span[0] - off_ns,
        len(devices),
        tuple(one for one in _by_class(index, devices, span) if not _is_off(one)),
        _by_class(index, index.lanes_of(LaneKind.WAITS), span),
        _steps_in(index, span),
    )


def _is_off(one: ClassTime) -> bool:
    return CLASSES[one.event_class] == GapCause.CAPTURE_GAP


def _by_class(index: Index, lanes: list[int], span: Span) -> tuple[ClassTime, ...]:
    found: dict[int, list[int]] = {}
    for lane in lanes:
        for group in index.at(lane, 0):
            first, last = group.rows(span[0], span[1] - 1)
            if first < last:
                until = group.covered_until(np.array(span, np.int64))
                total = found.setdefault(group.event_class, [0, 0])
                total[0] += int(until[1] - until[0])
                total[1] += last - first
    sums = (ClassTime(event_class, *total) for event_class, total in found.items())
    return tuple(sorted(sums, key=lambda one: -one.time_ns))


def _steps_in(index: Index, span: Span) -> tuple[str, str, int] | None:
    for lane in index.lanes_of(LaneKind.STEPS):
        for group in index.at(lane, 0):
            first, last = group.rows(span[0], span[1] - 1)
            if first < last:
                return step_number(index, group, first), step_number(index, group, last - 1), last - first
    return None
