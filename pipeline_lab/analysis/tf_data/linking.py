"""Compiled search for the event that made an element: the last one with its key that was done in time."""

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.trace.compiled import compiled

Int64Array = NDArray[np.int64]


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
