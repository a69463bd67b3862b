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
    rows: tuple[Int64Array, Int64Array, Int32Array, Int8Array, Int32Array],
    types: tuple[Int32Array, Int32Array],
    wait: Int32Array,
    own_ns: Int64Array,
    operations: Int64Array,
    waiting_ns: Int64Array,
) -> None:
    """Add up every event's own time: its length without that of the events in it. The last three change in place.

    Args:
        rows: Start and end of each row, the row around it, its role, its stage.
        types: Of each row its name, and of each name the type of its op.
        wait: Of each row the number of its wait, -1 for none.
        own_ns: Of every stage, shape (n_stages,).
        operations: Calls and time of each stage's ops by type, shape (n_stages, n_types, 2).
        waiting_ns: Of every call that waits, shape (n_waits,).
    """
    start, end, around, role, stage = rows
    name, type_of = types
    for row in range(len(start)):
        if role[row] == OPERATION and stage[row] >= 0:
            operations[stage[row], type_of[name[row]], 0] += 1
        length_ns = end[row] - start[row]
        for at, own in ((np.int32(row), length_ns), (around[row], -length_ns)):
            if at < 0 or stage[at] < 0:
                continue
            if wait[at] >= 0:
                waiting_ns[wait[at]] += own
            kind = role[at]
            if kind == OPERATION:
                operations[stage[at], type_of[name[at]], 1] += own
            elif kind in (ITERATOR, PRODUCE, CONSUME, BACKGROUND_FUNCTION) or (
                kind == NESTED_FUNCTION and around[at] >= 0 and role[around[at]] == BACKGROUND_FUNCTION
            ):
                own_ns[stage[at]] += own
