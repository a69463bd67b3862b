"""The moments at which a thread's events of some names last, without a copy of these events."""

import numpy as np

from pipeline_lab.analysis.activity.intervals import EMPTY, IntArray, union
from pipeline_lab.trace.compiled import compiled
from pipeline_lab.trace.schema import BoolArray, IndexArray, Line


def union_of_named(line: Line, names: BoolArray) -> IntArray:
    """Return the set of moments at which at least one event of these names lasts.

    Args:
        line: The thread.
        names: A mask over its plane's names.
    """
    most = line.count_named(names)
    if not most:
        return EMPTY
    joined = np.empty((most, 2), np.int64)
    length = join_named(line.start_ns, line.duration_ns, line.name_index, names, joined)
    if length < 0:
        rows = line.rows_named(names)
        return union(line.start_ns[rows], line.start_ns[rows] + line.duration_ns[rows])
    joined.resize((length, 2), refcheck=False)  # in place, where a slice would keep all of it
    return joined


@compiled
def join_named(start: IntArray, duration: IntArray, name: IndexArray, wanted: BoolArray, out: IntArray) -> int:
    """Write the union of the events of some names that last.

    Args:
        start, duration: ns, shape (n,).
        name: Index of each one's name, shape (n,).
        wanted: Which names, shape (n_names,).
        out: Room for the result, of as many rows as there are such events, shape (m, 2).

    Returns:
        The length of the result; -1 if these events are not ordered by start.
    """
    rows, last_start, reach = 0, 0, 0
    for event in range(len(name)):
        if not wanted[name[event]] or duration[event] <= 0:
            continue
        if rows and start[event] < last_start:
            return -1
        last_start, end = start[event], start[event] + duration[event]
        if rows == 0 or last_start > reach:
            out[rows, 0] = last_start
            rows, reach = rows + 1, end
        reach = max(reach, end)
        out[rows - 1, 1] = reach
    return rows
