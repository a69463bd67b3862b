"""Compiled loops over the events of one thread: which lies in which, and how much of each is its own.

Events are given as columns, sorted by start and then by length, the longest first, so that an outer event comes before
what lies in it. Row numbers are those of the columns; -1 stands for none.
"""

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.trace.compiled import compiled

Int64Array = NDArray[np.int64]
Int32Array = NDArray[np.int32]


@compiled
def nest(start: Int64Array, end: Int64Array, parent: Int32Array, own: Int64Array) -> None:
    """Write the event around each event and the time of each outside of those in it.

    Ends are cut to that of the event around: clocks are rounded.
    """
    for row in range(len(start)):
        around = np.int32(row - 1)
        while around >= 0 and end[around] <= start[row]:
            around = parent[around]
        parent[row] = around
        if around >= 0:
            end[row] = min(end[row], end[around])
            own[around] -= end[row] - start[row]
        own[row] = end[row] - start[row]


@compiled
def is_nested_order(start: Int64Array, end: Int64Array) -> bool:
    """Say whether the events come in the order that the other loops expect."""
    for row in range(1, len(start)):
        if start[row] < start[row - 1] or (start[row] == start[row - 1] and end[row] > end[row - 1]):
            return False
    return True


@compiled
def inherit(parent: Int32Array, stage: Int32Array) -> None:
    """Give every event without a stage that of the event around it."""
    for row in range(len(stage)):
        if stage[row] < 0 and parent[row] >= 0:
            stage[row] = stage[parent[row]]
