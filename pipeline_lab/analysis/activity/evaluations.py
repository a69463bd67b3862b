"""When a job evaluated its model between steps, by the events that `watch` writes around that."""

import numpy as np

from pipeline_lab.analysis.activity.intervals import EMPTY, IntArray, as_intervals, union_of
from pipeline_lab.runs.record import EVALUATION_BEGINS, EVALUATION_ENDS
from pipeline_lab.trace.schema import Line, Plane

LONG_AGO, LATER = -(1 << 61), 1 << 61
"""Stand for the beginning and the end of what a trace shows one end of alone, ns."""


def find_evaluations(host: Plane, *lines: Line) -> IntArray:
    """Return when these threads evaluated the model, a set, shape (n, 2), ns; of one whose other end is not in the trace, all up to there."""
    begins, ends = (host.name_mask(name.__eq__) for name in (EVALUATION_BEGINS, EVALUATION_ENDS))
    if not (begins | ends).any():
        return EMPTY
    return union_of(
        *(_on_thread(line.start_ns[line.rows_named(begins)], line.start_ns[line.rows_named(ends)]) for line in lines)
    )


def _on_thread(begun: IntArray, ended: IntArray) -> IntArray:
    """Return when at least one evaluation of a thread was under way."""
    times = np.concatenate((begun, ended))
    order = np.argsort(times, kind="stable")
    depth = np.cumsum(np.concatenate(([0], np.where(order < len(begun), 1, -1))))
    under_way = depth > depth.min()  # as many as had begun before the trace are under way at its start
    edges = np.concatenate(([LONG_AGO], times[order], [LATER]))
    return as_intervals(edges[:-1][under_way], edges[1:][under_way])
