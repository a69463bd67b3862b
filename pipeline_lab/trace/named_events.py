"""Compiled loops that find the events of some names; indices of names are within their tables, as readers make sure."""

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.trace.compiled import compiled
from pipeline_lab.trace.wire import Int32Array, Int64Array


@compiled
def count_names(name_index: Int32Array, counts: Int64Array) -> None:
    """Add to ``counts`` how often each name occurs."""
    for name in name_index:
        counts[name] += 1


@compiled
def find_named(name_index: Int32Array, wanted: NDArray[np.bool_], out: Int64Array) -> None:
    """Write the numbers of the events of the wanted names into ``out``, shape (their number,)."""
    rows = 0
    for event in range(len(name_index)):
        if wanted[name_index[event]]:
            out[rows] = event
            rows += 1
