"""Compiled loops behind the links: which calls wait for an element, and which event made it."""

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.trace.compiled import compiled

Int64Array = NDArray[np.int64]
Int32Array = NDArray[np.int32]
Int8Array = NDArray[np.int8]
BoolArray = NDArray[np.bool_]


@compiled
def find_waiting(
    rows: tuple[Int64Array, Int64Array, Int32Array, Int8Array, Int32Array],
    roles: tuple[int, int],
    has_threads: BoolArray,
    shortest_ns: int,
    ready: Int64Array,
    taken: Int32Array,
) -> None:
    """Write until when each call waits for its stage's own threads, 0 if it does not, and the row that takes its element.

    A call that goes on to the stage below makes the element itself.

    Args:
        rows: Start and end of each row, the row around it, its role, the stage of an iterator's event.
        roles: Those of an iterator's event, of taking an element out of a buffer.
        has_threads: Of every stage.
        shortest_ns: Waits shorter than this are none.
        ready, taken: The results; they begin as 0 and -1.
    """
    start, end, parent, role, place = rows
    iterator, consume = roles
    for row in range(len(start)):
        around = parent[row]
        if role[row] == iterator:
            if has_threads[place[row]]:
                ready[row] = end[row]
            if around >= 0:
                ready[around] = 0
        elif role[row] == consume and around >= 0 and ready[around] > 0:
            ready[around] = start[row]
            taken[around] = row
    for row in range(len(start)):
        if ready[row] != 0 and ready[row] - start[row] < shortest_ns:
            ready[row] = 0


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
