"""How many elements of each stage one batch takes: the visit ratios of the live tf.data model."""

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.model_nodes import INTERLEAVE, KNOWN_RATIO, NodeRows

FloatArray = NDArray[np.float64]


def visits_per_batch(nodes: NodeRows, rows: NDArray[np.bool_]) -> FloatArray:
    """Return the elements that each stage produces for one of the consumer's, shape (stages,).

    From the consumer down, a stage with a fixed ratio asks its input for that many; what an interleave reads comes
    from one of its inputs each; for anything else the elements are counted. A stage that is not there all the time
    (below a cache, in the first epoch alone) counts by the share of batches that were made while it was.

    Args:
        nodes: The rows.
        rows: Which of them count, shape (rows,).
    """
    visits = np.ones(len(nodes.paths))
    node_class, ratio = _of_stage(nodes, "node_class"), _of_stage(nodes, "ratio")
    for stage, above in enumerate(nodes.parents):
        if above >= 0:
            is_fixed, is_read_in_turn = node_class[above] in KNOWN_RATIO, node_class[above] in INTERLEAVE
            if is_fixed and ratio[above] > 0:
                share = float(ratio[above])
            elif is_read_in_turn:
                share = _share_of_turn(nodes, stage, rows)
            else:
                share = _counted_ratio(nodes, stage, rows)
            visits[stage] = visits[above] * share
    return visits * _presence(nodes, rows)


def _of_stage(nodes: NodeRows, column: str) -> FloatArray:
    """Return a column that all nodes of a stage share, shape (stages,)."""
    _, first = np.unique(nodes.stage, return_index=True)
    return np.asarray(tables.floats(nodes.table, column)[first])


def _share_of_turn(nodes: NodeRows, stage: int, rows: NDArray[np.bool_]) -> float:
    """Return the elements that an interleave takes from one kind of input for each of its own.

    The input at place 0 holds the arguments, such as file names; all others together give what it produces.
    """
    siblings = [other for other, above in enumerate(nodes.parents) if above == nodes.parents[stage]]
    arguments = [other for other in siblings if not (nodes.place[nodes.stage == other] > 0).any()]
    turns = [other for other in siblings if other not in arguments] or siblings
    if stage not in turns:
        return _counted_ratio(nodes, stage, rows)
    counts = nodes.sum_by_stage(nodes.elements, rows)
    total = counts[turns].sum()
    return float(counts[stage] / total) if total else 1.0 / len(turns)


def _counted_ratio(nodes: NodeRows, stage: int, rows: NDArray[np.bool_]) -> float:
    """Return elements of a stage per element of the one above, counted while neither was made anew."""
    mine = np.flatnonzero((nodes.stage == stage) & rows & (nodes.parent_row >= 0))
    lasting = mine[nodes.is_old[mine] & nodes.is_old[nodes.parent_row[mine]]]
    for counted in (lasting, mine):
        above = nodes.elements[np.unique(nodes.parent_row[counted])].sum()
        if above:
            return float(nodes.elements[counted].sum() / above)
    return 1.0


def _presence(nodes: NodeRows, rows: NDArray[np.bool_]) -> FloatArray:
    """Return the share of batches at whose sample each stage was there, shape (stages,)."""
    samples = len(nodes.times_ns)
    consumer = rows & (nodes.stage == 0)
    batches = np.bincount(nodes.sample[consumer], nodes.elements[consumer], minlength=samples)
    if not batches.sum():
        return np.ones(len(nodes.paths))
    is_there = np.zeros((len(nodes.paths), samples), np.bool_)
    is_there[nodes.stage, nodes.sample] = True
    return np.asarray(is_there @ batches / batches.sum())
