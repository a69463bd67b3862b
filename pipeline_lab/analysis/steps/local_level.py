"""The level of each step: the median of the steps around it, which slow drifts move and single slow steps do not."""

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.trace.compiled import compiled

Int64Array = NDArray[np.int64]
FloatArray = NDArray[np.float64]

NEIGHBOURS = 31
"""Steps around one, itself among them, whose median is its level; the first and the last ones have fewer."""


def local_level(length: IntArray) -> FloatArray:
    """Return the median of the steps around each step, shape (n,), ns.

    Args:
        length: Of consecutive steps, shape (n,), ns.
    """
    level = np.empty(len(length))
    medians_around(length, NEIGHBOURS // 2, np.empty(NEIGHBOURS, np.int64), level)
    return level


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
