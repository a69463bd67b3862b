"""Rows of the model table as arrays: which stage each node belongs to, what it did, how often a batch visits it.

A node is one iterator. TensorFlow makes new ones for every epoch and every file, whose counts begin at zero, so counts
are never compared between nodes: a stage is the sum of what its nodes added from one sample to the next.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.data_classes import dataclass

SEPARATOR = "::"
INTERLEAVE = (1, 2)
"""``INTERLEAVE_MANY`` and ``ASYNC_INTERLEAVE_MANY`` of TensorFlow's model.proto."""
KNOWN_RATIO = (3, 4)
"""``KNOWN_RATIO`` and ``ASYNC_KNOWN_RATIO``."""
REFILLED = frozenset({"Shuffle", "ShuffleAndRepeat"})
"""Iterators that take a buffer full at the start of an epoch and hand it on long after what made it is gone."""
_KEEPING = ("Cache", "Snapshot")
"""Words in the names of iterators that ask their input only until they have kept all of it."""


@dataclass(frozen=True, eq=False)
class NodeRows:
    """All rows of a model table; arrays have shape (rows,) unless said otherwise.

    Attributes:
        paths: Names from the consumer down to each stage, the consumer's own first; shape (stages,).
        parents: Index of the stage above each one, -1 for the first; shape (stages,).
        times_ns: Time of each sample, ns since the epoch, shape (samples,).
        stage, sample: Which stage and sample a row belongs to.
        place: The row's place among the inputs of its parent.
        parent_row: Row of the parent in the same sample, -1 without one.
        is_old: The node was there in the sample before.
        elements, processing_ns, bytes_produced: Added since the sample before, by a new node since it was made.
        table: The rows themselves.
    """

    paths: tuple[str, ...]
    parents: tuple[int, ...]
    times_ns: IntArray
    stage: IntArray
    sample: IntArray
    place: IntArray
    parent_row: IntArray
    is_old: NDArray[np.bool_]
    elements: IntArray
    processing_ns: IntArray
    bytes_produced: IntArray
    table: pa.Table

    def sum_by_stage(self, values: NDArray[np.float64] | IntArray, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Add up values of the chosen rows, shape (stages,)."""
        sums = np.bincount(self.stage[rows], values[rows], minlength=len(self.paths))
        return np.asarray(sums, np.float64)


def read_nodes(table: pa.Table) -> NodeRows:
    """Arrange a table of schema ``runs.run_tables.MODEL``; it has at least one row."""
    times_ns, sample = np.unique(tables.ints(table, "time_ns"), return_inverse=True)
    node = tables.ints(table, "node")
    stage, paths, parents = _stages(node, tables.ints(table, "parent"), table.column("name").to_pylist())
    key = sample * (node.max() + 1) + node
    before = _find(key, key - (node.max() + 1))
    above = tables.ints(table, "parent")
    parent_row = np.where(above >= 0, _find(key, sample * (node.max() + 1) + above), -1)

    def added(column: str) -> IntArray:
        values = tables.ints(table, column)
        return np.maximum(0, values - np.where(before >= 0, values[before], 0))

    return NodeRows(
        paths=paths,
        parents=parents,
        times_ns=times_ns,
        stage=stage,
        sample=sample,
        place=tables.ints(table, "place"),
        parent_row=parent_row,
        is_old=(before >= 0) & (sample > 0),
        elements=added("elements"),
        processing_ns=added("processing_ns"),
        bytes_produced=added("bytes_produced"),
        table=table,
    )


def _stages(node: IntArray, parent: IntArray, names: list[str]) -> tuple[IntArray, tuple[str, ...], tuple[int, ...]]:
    """Group nodes by the names on their way to the consumer; parents come before their children in every sample."""
    found: dict[str, int] = {}
    parents: list[int] = []
    stage_of = {-1: -1}
    stage = np.empty(len(node), np.int64)
    for row, (number, above, name) in enumerate(zip(node.tolist(), parent.tolist(), names, strict=True)):
        if number not in stage_of:
            upper = stage_of.get(above, -1)
            path = name if upper < 0 else f"{list(found)[upper]}{SEPARATOR}{name}"
            if path not in found:
                found[path] = len(found)
                parents.append(upper)
            stage_of[number] = found[path]
        stage[row] = stage_of[number]
    return stage, tuple(found), tuple(parents)


def _find(keys: IntArray, wanted: IntArray) -> IntArray:
    """Return the position of each wanted key, -1 where there is none."""
    order = np.argsort(keys, kind="stable")
    place = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    rows = order[place]
    return np.where(keys[rows] == wanted, rows, -1)


FloatArray = NDArray[np.float64]


def visits_per_batch(nodes: NodeRows, rows: NDArray[np.bool_]) -> FloatArray:
    """Return the elements that each stage produces for one of the consumer's, shape (stages,).

    From the consumer down, a stage with a fixed ratio asks its input for that many; what an interleave reads comes
    from one of its inputs each; for anything else the elements are counted. Inputs of the same names (of a zip) are one stage,
    which is asked as often as they are many. A stage that is not there all the time (below a cache, in the first epoch alone)
    counts by the share of batches that were made while it was. What fills a shuffle buffer is soon gone, and so is what has come
    to its end, but they made all that is handed on, unless another stage was seen in their place: of data that follow each other,
    or of a validation that takes turns with the training.

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
                share = float(ratio[above]) * _alike(nodes, stage)
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
    """Return elements of a stage per element of the one above, counted while neither was rebuilt."""
    mine = np.flatnonzero((nodes.stage == stage) & rows & (nodes.parent_row >= 0))
    lasting = mine[nodes.is_old[mine] & nodes.is_old[nodes.parent_row[mine]]]
    for counted in (lasting, mine):
        above = nodes.elements[np.unique(nodes.parent_row[counted])].sum()
        if above:
            return float(nodes.elements[counted].sum() / above)
    return 1.0


def _alike(nodes: NodeRows, stage: int) -> float:
    """Return the inputs of one node that are the same stage: a zip asks each of them for every element of its own."""
    above = nodes.parent_row[(nodes.stage == stage) & (nodes.parent_row >= 0)]
    return len(above) / len(np.unique(above)) if len(above) else 1.0


def _presence(nodes: NodeRows, rows: NDArray[np.bool_]) -> FloatArray:
    """Return the share of batches for which each stage worked, shape (stages,): see :func:`visits_per_batch`."""
    samples = len(nodes.times_ns)
    consumer = rows & (nodes.stage == 0)
    batches = np.bincount(nodes.sample[consumer], nodes.elements[consumer], minlength=samples)
    if not batches.sum():
        return np.ones(len(nodes.paths))
    is_there = np.zeros((len(nodes.paths), samples), np.bool_)
    is_there[nodes.stage, nodes.sample] = True
    seen = np.asarray(is_there @ batches / batches.sum())
    worked, node_class, place = seen.copy(), _of_stage(nodes, "node_class"), _of_stage(nodes, "place")
    for stage, above in enumerate(nodes.parents):
        if above >= 0 and seen[above]:
            name = nodes.paths[above].rpartition(SEPARATOR)[2]
            takes_all = node_class[above] in KNOWN_RATIO and not any(word in name for word in _KEEPING)
            takes_turns = [
                other
                for other, its_above in enumerate(nodes.parents)
                if its_above == above and place[other] == place[stage]
            ]
            seen_any = is_there[takes_turns].any(axis=0) @ batches / batches.sum()
            of = seen_any if seen_any and (name in REFILLED or takes_all) else seen[above]
            worked[stage] = worked[above] * min(1.0, seen[stage] / of)
    return worked
