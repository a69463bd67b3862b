"""Why nothing ran on a device: every idle moment is given to exactly one cause.

The causes are tried in the order of :class:`pipeline_lab.analysis.causes.GapCause`; a moment belongs to the first that holds. A named host
operation counts only where its events fill at least half of the gap.
"""

from dataclasses import dataclass

import numpy as np

from pipeline_lab.analysis.activity import Activity
from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.gap_operations import GapOperations, find_operations
from pipeline_lab.analysis.intervals import EMPTY, IntArray, complement, intersect, subtract, union

FILLING_SHARE = 0.5
"""A host operation names a gap when its events fill at least this share of it."""


@dataclass(frozen=True, eq=False)
class Attribution:
    """All idle moments of one device, by cause.

    Attributes:
        gaps: The idle intervals, a set.
        causes: For each cause the idle moments that belong to it; together they are ``gaps``.
        operations: What the host did in them.
        named: Name of the host operation that fills each gap, or None, length ``len(gaps)``.
    """

    gaps: IntArray
    causes: dict[GapCause, IntArray]
    operations: GapOperations
    named: list[str | None]


def attribute(activity: Activity, work: IntArray) -> Attribution:
    """Give every moment of a trace without ``work`` (a device's, or ``activity.busy``) to one cause."""
    return activity.once(work, lambda work: _attribute(activity, work))


def _attribute(activity: Activity, work: IntArray) -> Attribution:
    gaps = complement(work, *activity.extent)
    operations = find_operations(activity, gaps)
    named, filled = _fillers(operations, gaps)
    candidates = {
        GapCause.INPUT_WAIT: activity.waits.moments,
        GapCause.HOST_TO_DEVICE: activity.host_to_device,
        GapCause.COMPILE: activity.compiling,
        GapCause.COLLECTIVE: activity.collectives,
        GapCause.HOST_OPERATION: filled,
        GapCause.CHECKPOINT: activity.checkpointing,
        GapCause.DISPATCH: activity.runtime,
        GapCause.PYTHON: gaps if activity.training_line is not None else EMPTY,
        GapCause.UNKNOWN: gaps,
    }
    causes, left = {GapCause.CAPTURE_GAP: EMPTY}, gaps
    for cause, moments in candidates.items():
        causes[cause] = intersect(left, moments)
        left = subtract(left, moments)
    return Attribution(gaps, causes, operations, named)


def _fillers(operations: GapOperations, gaps: IntArray) -> tuple[list[str | None], IntArray]:
    """Name the op that fills most of each gap, where it fills enough of it, and say when it did."""
    named: list[str | None] = [None] * len(gaps)
    gap, operation, time_ns = operations.by_gap()
    ops = operations.may_name[operation]
    gap, operation, time_ns = gap[ops], operation[ops], time_ns[ops]
    first = np.flatnonzero(np.diff(gap, prepend=-1))
    filling = first[time_ns[first] >= FILLING_SHARE * (gaps[gap[first], 1] - gaps[gap[first], 0])]
    for row in filling.tolist():
        named[gap[row]] = operations.names[operation[row]]
    filler = np.full(len(gaps), -1, np.int64)
    filler[gap[filling]] = operation[filling]
    moments = filler[operations.gap] == operations.operation
    return named, union(operations.start_ns[moments], operations.end_ns[moments])
