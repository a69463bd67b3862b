"""Compiled loops over the events of one thread: which lies in which, and for which stage it works.

Events are given as columns, sorted by start and then by length, the longest first, so that an outer event comes before
what lies in it. Row numbers are those of the columns; -1 stands for none.
"""

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.trace.compiled import compiled

Int64Array = NDArray[np.int64]
Int32Array = NDArray[np.int32]
Int8Array = NDArray[np.int8]


@compiled
def count_names(name_index: Int32Array, counts: Int64Array) -> None:
    """Add to ``counts`` how often each name occurs."""
    for name in name_index:
        counts[name] += 1


@compiled
def collect(
    line: tuple[Int64Array, Int64Array, Int32Array],
    roles: Int8Array,
    stages: Int32Array,
    columns: tuple[Int64Array, Int64Array, Int8Array, Int32Array, Int32Array, Int32Array],
) -> bool:
    """Write the events of a thread whose names have a role; say whether they come in the order that `nest` expects.

    Args:
        line: Start, duration and name of every event of the thread.
        roles, stages: Of every name.
        columns: Start, end, role, stage, name and number of the events with a role.
    """
    all_start, all_duration, all_names = line
    start, end, role, stage, name, number = columns
    row, is_ordered = 0, True
    for event in range(len(all_names)):
        index = all_names[event]
        if roles[index] != 0:
            start[row] = all_start[event]
            end[row] = all_start[event] + all_duration[event]
            role[row], stage[row], name[row], number[row] = roles[index], stages[index], index, event
            if row > 0 and (start[row] < start[row - 1] or (start[row] == start[row - 1] and end[row] > end[row - 1])):
                is_ordered = False
            row += 1
    return is_ordered


@compiled
def nest(first: int, after: int, start: Int64Array, end: Int64Array, parent: Int32Array) -> None:
    """Write the event around each event in rows ``[first, after)``.

    Ends are cut to that of the event around: clocks are rounded.
    """
    for row in range(first, after):
        around = np.int32(row - 1)
        while around >= first and end[around] <= start[row]:
            around = parent[around]
        if around < first:
            around = np.int32(-1)
        parent[row] = around
        if around >= 0:
            end[row] = min(end[row], end[around])


@compiled
def inherit(parent: Int32Array, stage: Int32Array) -> None:
    """Give every event without a stage that of the event around it."""
    for row in range(len(stage)):
        if stage[row] < 0 and parent[row] >= 0:
            stage[row] = stage[parent[row]]


@compiled
def find_stages(
    bounds: Int64Array,
    roles: tuple[int, int, int],
    columns: tuple[Int32Array, Int8Array, Int32Array],
    above: Int32Array,
    stage: Int32Array,
) -> None:
    """Write the stage of every event that an iterator's event tells it of: what lies in it, and what made its element.

    Args:
        bounds: Where each thread's rows begin, and where the last one's end.
        roles: Those of an iterator's event, of the making of an element, of a function that is started beside it.
        columns: Of every row the row around it, its role, the stage of an iterator's event.
        above: Of every stage the one that reads it.
        stage: The result; -1 for none.
    """
    iterator, produce, background = roles
    parent, role, place = columns
    stage[:] = place
    for thread in range(len(bounds) - 1):
        outermost = -1
        for row in range(bounds[thread], bounds[thread + 1]):
            around = parent[row]
            if role[row] == iterator:
                if around < 0:
                    outermost = row
                elif role[around] == produce:
                    stage[around] = above[place[row]]
            elif role[row] == background and around < 0 and outermost >= 0:
                stage[row] = above[place[outermost]]
    inherit(parent, stage)
