"""Compiled loops behind the links: which calls wait for an element, and which event made it."""

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.trace.compiled import compiled

Int64Array = NDArray[np.int64]
Int32Array = NDArray[np.int32]
Int8Array = NDArray[np.int8]
BoolArray = NDArray[np.bool_]

NOBODY = -1


@compiled
def find_waiting(
    rows: tuple[Int64Array, Int64Array, Int32Array, Int8Array, Int32Array],
    roles: tuple[int, int],
    has_threads: BoolArray,
    shortest_ns: int,
    taken: Int32Array,
) -> None:
    """Write for each call that waits for its stage's own threads the row that takes its element, or the call itself.

    A call that goes on to the stage below makes the element itself.

    Args:
        rows: Start and end of each row, the row around it, its role, the stage of an iterator's event.
        roles: Those of an iterator's event, of taking an element out of a buffer.
        has_threads: Of every stage.
        shortest_ns: Waits shorter than this are none.
        taken: The result; -1 for rows that do not wait.
    """
    start, end, parent, role, place = rows
    iterator, consume = roles
    for row in range(len(start)):
        around = parent[row]
        taken[row] = NOBODY
        if role[row] == iterator:
            if has_threads[place[row]]:
                taken[row] = row
            if around >= 0:
                taken[around] = NOBODY
        elif role[row] == consume and around >= 0 and taken[around] != NOBODY:
            taken[around] = row
    for row in range(len(start)):
        if taken[row] != NOBODY:
            ready_ns = end[row] if taken[row] == row else start[taken[row]]
            if ready_ns - start[row] < shortest_ns:
                taken[row] = NOBODY


@compiled
def find_makers(wanted: Int64Array, until: Int64Array, keys: Int64Array, done: Int64Array, found: Int64Array) -> None:
    """Write for each wanted key the place of the last maker with that key that was done by ``until``, -1 for none.

    Makers are sorted by key and then by when they were done.
    """
    for k in range(len(wanted)):
        low, high = 0, len(keys)
        while low < high:
            middle = (low + high) // 2
            if keys[middle] < wanted[k] or (keys[middle] == wanted[k] and done[middle] <= until[k]):
                low = middle + 1
            else:
                high = middle
        found[k] = low - 1 if low > 0 and keys[low - 1] == wanted[k] else -1
