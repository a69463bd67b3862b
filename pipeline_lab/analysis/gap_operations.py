"""What the host did while a device idled: the operations inside each gap, ranked by how much of it they fill.

Operations are told apart by the type of their op (``DeserializeSparse``), whatever instance of it ran on whatever
thread; overlapping events of one type count once, those of two types count for both, so the shares of a gap may add up
to more than all of it. An op that Python calls lasts as long as the call (``TFE_Py_FastPathExecute_C``), which
includes turning its arguments into tensors.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis import event_names
from pipeline_lab.analysis.activity import Activity
from pipeline_lab.analysis.event_names import Kind
from pipeline_lab.analysis.intervals import IntArray, covered_until, pair_ranges, union_by
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
    names, may_name, label, start, end = _labelled_events(activity)
    long = np.flatnonzero(gaps[:, 1] - gaps[:, 0] >= SHORTEST_GAP_NS)
    touching = covered_until(gaps[long], end) > covered_until(gaps[long], start)
    label, start, end = union_by(label[touching], start[touching], end[touching])
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


def _labelled_events(activity: Activity) -> tuple[tuple[str, ...], NDArray[np.bool_], IntArray, IntArray, IntArray]:
    """Return the operations of the host, whether each may name a gap, and its events by operation, start and end."""
    if activity.host is None:
        return (), np.empty(0, np.bool_), _NONE, _NONE, _NONE
    plane_names = activity.host.names
    texts = np.array(
        [event_names.operation(name) or name for name in plane_names], object
    )  # not as long as the longest
    names, label_of_name = np.unique(texts, return_inverse=True)
    may_name = np.zeros(len(names), np.bool_)
    labels, starts, ends = [_NONE], [_NONE], [_NONE]
    for line, rows in activity.events_of(_RANKED):
        label = label_of_name[line.name_index[rows]]
        naming = activity.rows(line, _NAMING)
        may_name[label_of_name[line.name_index[naming]]] = True
        start, end = _as_called(activity, line, rows)
        labels.append(label)
        starts.append(start)
        ends.append(end)
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
