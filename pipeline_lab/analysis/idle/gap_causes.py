"""Why nothing ran on a device: every idle moment is given to exactly one cause.

The causes are tried in the order of :class:`GapCause`; a moment belongs to the first that holds. A named host
operation counts only where its events fill at least half of the gap; an op that launches its work on a device is dispatch.

Operations are told apart by the type of their op (``DeserializeSparse``), whatever instance of it ran on whatever
thread; overlapping events of one type count once, those of two types count for both, so the shares of a gap may add up
to more than all of it. An op that Python calls lasts as long as the call (``TFE_Py_FastPathExecute_C``), which
includes turning its arguments into tensors.
"""

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity import event_names
from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.activity.event_names import Kind
from pipeline_lab.analysis.activity.intervals import (
    EMPTY,
    IntArray,
    complement,
    covered_until,
    intersect,
    pair_ranges,
    subtract,
    union,
    union_by,
)
from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.data_classes import dataclass
from pipeline_lab.trace.schema import Line

SHORTEST_GAP_NS = 100_000
"""Launching a kernel takes an op up to 60 µs; in gaps shorter than this, op events mean dispatch."""

_RANKED = Kind.OP | Kind.EAGER_OP | Kind.INPUT_OP | Kind.CHECKPOINT | Kind.COMPILE | Kind.COLLECTIVE
_NAMING = Kind.OP | Kind.EAGER_OP | Kind.INPUT_OP
_NONE: IntArray = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class GapOperations:
    """Stretches of host operations inside gaps; one operation's do not overlap each other.

    Attributes:
        names: The operations that occur.
        may_name: Which of them are ops that can give a gap its name, shape (len(names),); the others (checkpoints,
            compiling, collectives) are causes of their own.
        gap: Index of the gap of each stretch, shape (n,).
        operation: Index into ``names``, shape (n,).
        start_ns, end_ns: Clipped to the gap, shape (n,).
    """

    names: tuple[str, ...]
    may_name: NDArray[np.bool_]
    gap: IntArray
    operation: IntArray
    start_ns: IntArray
    end_ns: IntArray

    def by_gap(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return gap, operation and time (ns) of every pair that meets, the longest of each gap first."""
        width = max(1, len(self.names))
        pairs, group = np.unique(self.gap * width + self.operation, return_inverse=True)
        time_ns = np.bincount(group, self.end_ns - self.start_ns, len(pairs)).astype(np.int64)
        gap, operation = pairs // width, pairs % width
        order = np.lexsort((-time_ns, gap))
        return gap[order], operation[order], time_ns[order]


def find_operations(activity: Activity, gaps: IntArray) -> GapOperations:
    """Find the host operations inside idle gaps.

    Args:
        activity: The trace.
        gaps: A set; those shorter than :data:`SHORTEST_GAP_NS` are passed over.
    """
    long = np.flatnonzero(gaps[:, 1] - gaps[:, 0] >= SHORTEST_GAP_NS)
    names, may_name, label, start, end = _labeled_events(activity, gaps[long])
    label, start, end = union_by(label, start, end)
    row, gap = pair_ranges(np.searchsorted(gaps[long, 1], start, side="right"), np.searchsorted(gaps[long, 0], end))
    gap = long[gap]
    return GapOperations(
        names,
        may_name,
        gap=gap,
        operation=label[row],
        start_ns=np.maximum(gaps[gap, 0], start[row]),
        end_ns=np.minimum(gaps[gap, 1], end[row]),
    )


def _labeled_events(
    activity: Activity, gaps: IntArray
) -> tuple[tuple[str, ...], NDArray[np.bool_], IntArray, IntArray, IntArray]:
    """Return the operations of the host, whether each may name a gap, and its events in gaps by operation, start and end."""
    if activity.host is None:
        return (), np.empty(0, np.bool_), _NONE, _NONE, _NONE
    plane_names = activity.host.names
    texts = np.array(
        [event_names.operation(name) or name for name in plane_names], object
    )  # not as long as the longest
    names, label_of_name = np.unique(texts, return_inverse=True)
    on_host, on_device = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    labels, starts, ends = [_NONE], [_NONE], [_NONE]
    for line, rows in activity.events_of(_RANKED):
        naming = activity.rows(line, _NAMING)
        ops, launches = label_of_name[line.name_index[naming]], activity.launches.hold_one(line, naming)
        on_host += np.bincount(ops[~launches], minlength=len(names))
        on_device += np.bincount(ops[launches], minlength=len(names))
        start, end = _as_called(activity, line, rows)
        touching = covered_until(gaps, end) > covered_until(gaps, start)
        labels.append(label_of_name[line.name_index[rows[touching]]])
        starts.append(start[touching])
        ends.append(end[touching])
    may_name = on_host > on_device  # what an op does on the host to launch its work on a device is dispatch
    return tuple(names.tolist()), may_name, np.concatenate(labels), np.concatenate(starts), np.concatenate(ends)


def _as_called(activity: Activity, line: Line, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return start and end of a thread's operations; those that Python calls last as long as the call."""
    start = line.start_ns[rows]
    end = start + line.duration_ns[rows]
    calls = activity.rows(line, Kind.PYTHON_CALL)
    if not len(calls):
        return start, end
    calls = calls[np.argsort(line.start_ns[calls], kind="stable")]
    call_start = line.start_ns[calls]
    call_end = call_start + line.duration_ns[calls]
    last = np.searchsorted(call_start, start, side="right") - 1
    inside = (last >= 0) & (call_end[last] >= end)
    return np.where(inside, call_start[last], start), np.where(inside, call_end[last], end)


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
    moments = {
        GapCause.CAPTURE_GAP: EMPTY,
        GapCause.INPUT_WAIT: activity.waits.moments,
        GapCause.HOST_TO_DEVICE: activity.host_to_device,
        GapCause.COMPILE: activity.compiling,
        GapCause.COLLECTIVE: activity.collectives,
        GapCause.HOST_OPERATION: filled,
        GapCause.CHECKPOINT: activity.checkpointing,
        GapCause.ITERATOR_END: activity.changing_iterators,
        GapCause.DISPATCH: activity.runtime,
        GapCause.PYTHON: gaps if activity.training_line is not None else EMPTY,
        GapCause.UNKNOWN: gaps,
    }
    causes, left = {}, gaps
    for cause in GapCause:
        causes[cause] = intersect(left, moments[cause])
        left = subtract(left, moments[cause])
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
