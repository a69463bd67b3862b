"""The level of each step: the median of the steps around it, which slow drifts move and single slow steps do not."""

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.trace.compiled import compiled

Int64Array = NDArray[np.int64]
FloatArray = NDArray[np.float64]

NEIGHBORS = 31
"""Steps around one, itself among them, whose median is its level; the first and the last ones have fewer."""
HALF = NEIGHBORS // 2
"""Of them on either side."""


def local_level(length: IntArray) -> FloatArray:
    """Return the median of the steps around each step, shape (n,), ns.

    Args:
        length: Of consecutive steps, shape (n,), ns.
    """
    level = np.empty(len(length))
    medians_around(length, HALF, np.empty(NEIGHBORS, np.int64), level)
    return level


class LevelKeeper:
    """Finds the levels of the steps of a job in progress as :func:`local_level` does: each time only those of steps with new neighbors."""

    def __init__(self) -> None:
        self._length: IntArray = np.empty(0, np.int64)
        self._level: FloatArray = np.empty(0)

    def find(self, length: IntArray) -> FloatArray:
        """Return the level of each step; the argument is that of :func:`local_level`."""
        known = min(len(length), len(self._length))
        others = np.flatnonzero(length[:known] != self._length[:known])
        kept = max(0, (int(others[0]) if len(others) else known) - HALF)
        begin = max(0, kept - HALF)
        self._length, self._level = length, np.append(self._level[:kept], local_level(length[begin:])[kept - begin :])
        return self._level


@compiled
def medians_around(values: Int64Array, half: int, around: Int64Array, median: FloatArray) -> None:
    """Write for each value the median of it and of ``half`` values on either side, as far as there are any.

    Args:
        values: In a row, shape (n,).
        half: How many on either side.
        around: Room for the values around one, which stay sorted there, shape (2 · half + 1,).
        median: Shape (n,).
    """
    count = 0
    for arriving in range(len(values) + half):
        leaving = arriving - 2 * half - 1
        if leaving >= 0:
            at = np.searchsorted(around[:count], values[leaving])
            count -= 1
            for place in range(at, count):
                around[place] = around[place + 1]
        if arriving < len(values):
            at = count
            count += 1
            while at > 0 and around[at - 1] > values[arriving]:
                around[at] = around[at - 1]
                at -= 1
            around[at] = values[arriving]
        if arriving >= half:
            median[arriving - half] = (around[(count - 1) // 2] + around[count // 2]) / 2
