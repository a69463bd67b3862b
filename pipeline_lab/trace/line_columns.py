"""Compiled loops over the columns of a finished line.

``name_index`` has 16 or 32 bits, and no index in it lies outside the plane's table of names any more.
"""

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.trace.compiled import compiled
from pipeline_lab.trace.wire import Int8Array, Int32Array, Int64Array

Indices = Int32Array | Int8Array


@compiled
def count_names(name_index: Indices, counts: Int64Array, first: Int64Array) -> None:
    """Write how often each name occurs, and the number of its first event; ``counts`` is 0 before."""
    for event in range(len(name_index)):
        name = name_index[event]
        if counts[name] == 0:
            first[name] = event
        counts[name] += 1


@compiled
def find_named(name_index: Indices, wanted: NDArray[np.bool_], out: Int64Array) -> None:
    """Write the numbers of the events of the wanted names into ``out``, which has room for one more, shape (their number + 1,).

    Every event is written, and the next one over it unless it is wanted: a branch would be guessed wrong all the time.
    """
    rows = 0
    for event in range(len(name_index)):
        out[rows] = event
        rows += wanted[name_index[event]]


@compiled
def find_reach(start: Int64Array, duration: Int64Array) -> tuple[int, int, int, int, int]:
    """Return the first start, the last start, the last end, the least and the greatest length of one event or more."""
    first, last, end = start[0], start[0], start[0] + duration[0]
    least, greatest = duration[0], duration[0]
    for event in range(1, len(start)):
        first, last = min(first, start[event]), max(last, start[event])
        end = max(end, start[event] + duration[event])
        least, greatest = min(least, duration[event]), max(greatest, duration[event])
    return first, last, end, least, greatest


@compiled
def find_last_end(
    start: Int64Array, duration: Int64Array, name_index: Indices, wanted: NDArray[np.bool_], least: int
) -> int:
    """Return when the last event of the wanted names ended; ``least`` if that is not later, or there is none."""
    end = least
    for event in range(len(start)):
        if wanted[name_index[event]]:
            end = max(end, start[event] + duration[event])
    return end
