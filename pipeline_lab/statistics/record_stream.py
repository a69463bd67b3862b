"""What a stage of a simulated pipeline hands on: record numbers, asked for so many at a time."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

Stream: TypeAlias = Callable[[int], IntArray]
"""Starts an iteration and returns at most that many of its first elements, shape (elements, records in each).

A record is its number in the data, files laid one after another; -1 fills up a last batch that is not full.
"""

NOTHING = -1
