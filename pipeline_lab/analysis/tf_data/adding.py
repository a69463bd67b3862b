"""Compiled sums over all events of a pipeline's threads, by stage."""

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.trace.compiled import compiled

Int64Array = NDArray[np.int64]
Int32Array = NDArray[np.int32]
Int8Array = NDArray[np.int8]

# Roles of `kinds.Role` whose time is the stage's own.
ITERATOR, PRODUCE, CONSUME, NESTED_FUNCTION, OPERATION, BACKGROUND_FUNCTION = 2, 3, 4, 6, 9, 11


@compiled
def add_up(
    rows: tuple[Int64Array, Int32Array, Int8Array, Int32Array, Int32Array],
    types: Int32Array,
    own_ns: Int64Array,
    operations: Int64Array,
) -> None:
    """Add every event's own time to its stage, changing the last two in place.

    Args:
        rows: Own time of each row, the row around it, its role, its stage, its name.
        types: The type of op of each name.
        own_ns: Of every stage, shape (n_stages,).
        operations: Calls and time of each stage's ops by type, shape (n_stages, n_types, 2).
    """
    own, around, role, stage, name = rows
    for row in range(len(own)):
        at = stage[row]
        if at < 0:
            continue
        kind = role[row]
        if kind == OPERATION:
            operations[at, types[name[row]], 0] += 1
            operations[at, types[name[row]], 1] += own[row]
        elif kind in (ITERATOR, PRODUCE, CONSUME, BACKGROUND_FUNCTION) or (
            kind == NESTED_FUNCTION and around[row] >= 0 and role[around[row]] == BACKGROUND_FUNCTION
        ):
            own_ns[at] += own[row]
