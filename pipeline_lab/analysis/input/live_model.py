"""What tf.data's own model says of a run's pipeline: work per batch, parallelism and buffers of every stage."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.columns import finite
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, JobView, LaterView, PerJob, to_ms
from pipeline_lab.analysis.input.model_nodes import SEPARATOR, NodeRows, read_nodes, visits_per_batch
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError

STAGE_TIMELINE = pa.schema(
    [
        ("time_ns", pa.int64()),  # on the diagnosis' axis
        ("stage", pa.int16()),  # index into the stages
        ("elements", pa.int64()),  # produced since the sample before
        ("parallelism", pa.float32()),  # null for stages without
        ("buffered_elements", pa.int64()),
        ("buffered_bytes", pa.int64()),
        ("buffer_limit", pa.float32()),  # elements; null where the model knows none
    ]
)
"""One row per sample and stage, nodes of one stage added up; at most :data:`MAX_SAMPLES` samples."""

MAX_SAMPLES = 400
ASYNCHRONOUS = (2, 4, 6)
"""Node classes whose work runs on threads of their own."""

NO_MODEL = (
    "tf.data's own model of the pipeline is only known where Pipeline Lab recorded the job; launch it with "
    "`pipeline-lab run`, or put `pipeline-lab watch` before it, to have the model sampled."
)
NOT_SAMPLED = (
    "tf.data's own model of the pipeline was not sampled twice after the first epoch, which differs from the later "
    "ones; record more epochs."
)
OLD_RUN = "The run was recorded before Pipeline Lab sampled tf.data's own model; record it again to see its stages."
MODEL_OFF = (
    "TensorFlow kept no model of this pipeline that could be reached: its options switch autotuning off, it is "
    "distributed, or it belongs to a TensorFlow 1 session; leave `options.autotune.enabled` as it is, and run it "
    "eagerly on one device, to have its stages sampled."
)


@dataclass(frozen=True)
class StageWork:
    """One stage: all iterators of the pipeline with the same names between them and the training step.

    Attributes:
        path: Names from the outermost stage (``Root``) down to this one, joined by ``::``, as in traces but without
            the numbers in brackets.
        parent: Index of the stage that asks this one for elements, None for the outermost.
        visits_per_batch: V, elements that this stage produces for one batch, 0 if it is upstream of a full cache.
        self_ns: s, thread time of this stage itself for one element; time of others in it does not count.
        elements: Produced in the steady part of the run.
        element_bytes: Mean size of its elements, None if it made none.
        parallelism: Mean over the steady part, all iterators together; None for stages without.
        parallelism_tuned: The autotuner may change it.
        cycle_length: Inputs that are read in turn; None for stages without.
        buffer_limit: Elements that its buffer may hold, the latest value; None where the model knows none.
        buffer_tuned: The autotuner may change it.
        buffered_elements, buffered_bytes: Mean over the steady part; None for a stage that never held any.
        peak_bytes: Most that its buffer held in the whole run.
        is_asynchronous: It works on threads of its own, ahead of the stage above.
    """

    path: str
    parent: int | None
    visits_per_batch: float
    self_ns: float
    elements: int
    element_bytes: float | None
    parallelism: float | None
    parallelism_tuned: bool
    cycle_length: float | None
    buffer_limit: float | None
    buffer_tuned: bool
    buffered_elements: float | None
    buffered_bytes: float | None
    peak_bytes: int
    is_asynchronous: bool

    @property
    def name(self) -> str:
        """The iterator's own name, such as ``ParallelMapV2``."""
        return self.path.rpartition(SEPARATOR)[2]

    @property
    def node(self) -> str:
        """The dataset behind it, which the model does not tell."""
        return ""

    @property
    def work_ns(self) -> float:
        """The stage work w = V·s: thread time for one batch."""
        return self.visits_per_batch * self.self_ns


@dataclass(frozen=True, eq=False)
class LiveModel:
    """The pipeline as tf.data saw it.

    Attributes:
        stages: The outermost first, each after the one that asks it.
        timeline: Of schema :data:`STAGE_TIMELINE`.
        samples: Looks at the model, of which ``timeline`` may hold a part.
        start_ns, end_ns: The steady part that the numbers are about: after the warm-up; on the diagnosis' axis.
        batches: Made in the steady part.
        cpu_budget: Cores that the autotuner plans with.
        ram_budget_bytes: Memory that it allows for buffers.
        peak_bytes: Most that all buffers held at once.
        last_change_ns: When the autotuner last changed a parameter, None if it never did; on the diagnosis' axis.
    """

    stages: tuple[StageWork, ...]
    timeline: pa.Table
    samples: int
    start_ns: int
    end_ns: int
    batches: int
    cpu_budget: int
    ram_budget_bytes: int
    peak_bytes: int
    last_change_ns: int | None


def measure_model(model: pa.Table | None, steps: pa.Table, origin_ns: int) -> LiveModel:
    """Sum up the samples of a run.

    Args:
        model: Of schema ``runs.run_tables.MODEL``; None for a run without that table.
        steps: Of schema ``runs.run_tables.STEPS``, for the end of the warm-up.
        origin_ns: Zero of the diagnosis' axis, ns since the epoch.

    Raises:
        TraceIncompleteError: There is no sample.
    """
    if model is None:
        raise TraceIncompleteError(OLD_RUN)
    if not model.num_rows:
        raise TraceIncompleteError(MODEL_OFF)
    nodes = read_nodes(model)
    first, rows = _steady(nodes, steps)
    total_bytes = np.bincount(nodes.sample, tables.ints(model, "buffered_bytes"))
    return LiveModel(
        stages=_stages(nodes, rows),
        timeline=_timeline(nodes, origin_ns),
        samples=len(nodes.times_ns),
        start_ns=int(nodes.times_ns[first]) - origin_ns,
        end_ns=int(nodes.times_ns[-1]) - origin_ns,
        batches=int(nodes.elements[rows & (nodes.stage == 0)].sum()),
        cpu_budget=int(tables.ints(model, "cpu_budget")[-1]),
        ram_budget_bytes=int(tables.ints(model, "ram_budget_bytes")[-1]),
        peak_bytes=int(total_bytes.max()),
        last_change_ns=_last_change(nodes, origin_ns),
    )


def _steady(nodes: NodeRows, steps: pa.Table) -> tuple[int, NDArray[np.bool_]]:
    """Return the first sample after the warm-up, and which rows say what happened after it.

    With fewer than two such samples, the whole run has to do.
    """
    is_warm = ~tables.bools(steps, "warmup")
    start_ns = tables.ints(steps, "start_ns")[is_warm].min() if is_warm.any() else nodes.times_ns[-1]
    first = int(np.searchsorted(nodes.times_ns, start_ns))
    rows = nodes.sample > first
    if not nodes.elements[rows & (nodes.stage == 0)].sum():
        return 0, np.ones(len(nodes.stage), np.bool_)
    return first, rows


def _stages(nodes: NodeRows, rows: NDArray[np.bool_]) -> tuple[StageWork, ...]:
    everything = np.ones(len(rows), np.bool_)
    visits = visits_per_batch(nodes, rows)
    elements = nodes.sum_by_stage(nodes.elements, rows)
    self_ns = _per_element(nodes, nodes.processing_ns, rows)
    element_bytes = _per_element(nodes, nodes.bytes_produced, rows)
    parallelism, buffered, held = (
        _mean_over_samples(nodes, name, rows) for name in ("parallelism", "buffered_elements", "buffered_bytes")
    )
    peak = _by_sample(nodes, "buffered_bytes", everything).max(axis=0)
    last = _last_rows(nodes)
    limit, cycle = (tables.floats(nodes.table, name)[last] for name in ("buffer_limit", "cycle_length"))
    is_tuned, is_buffer_tuned = (
        tables.valid(nodes.table, name)[last] & tables.bools(nodes.table, name)[last]
        for name in ("parallelism_tuned", "buffer_tuned")
    )
    node_class = tables.ints(nodes.table, "node_class")[last]
    return tuple(
        StageWork(
            path=path,
            parent=nodes.parents[stage] if nodes.parents[stage] >= 0 else None,
            visits_per_batch=float(visits[stage]),
            self_ns=float(np.nan_to_num(self_ns[stage])),
            elements=int(elements[stage]),
            element_bytes=_known(element_bytes[stage]),
            parallelism=_known(parallelism[stage]),
            parallelism_tuned=bool(is_tuned[stage]),
            cycle_length=_known(cycle[stage]),
            buffer_limit=_known(limit[stage]),
            buffer_tuned=bool(is_buffer_tuned[stage]),
            buffered_elements=_known(buffered[stage]) if peak[stage] else None,
            buffered_bytes=_known(held[stage]) if peak[stage] else None,
            peak_bytes=int(peak[stage]),
            is_asynchronous=int(node_class[stage]) in ASYNCHRONOUS,
        )
        for stage, path in enumerate(nodes.paths)
    )


def _per_element(nodes: NodeRows, values: IntArray, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return a sum for each element of its stage, over the whole run where the chosen rows have none; NaN without."""
    everything = np.ones(len(rows), np.bool_)
    with np.errstate(divide="ignore", invalid="ignore"):
        steady, whole = (
            nodes.sum_by_stage(values, part) / nodes.sum_by_stage(nodes.elements, part) for part in (rows, everything)
        )
    return np.where(np.isfinite(steady), steady, np.where(np.isfinite(whole), whole, np.nan))


def _by_sample(nodes: NodeRows, column: str, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Add up a column over the nodes of each stage at each sample, shape (samples, stages); NaN where none has it."""
    shape = (len(nodes.times_ns), len(nodes.paths))
    values = tables.floats(nodes.table, column)
    chosen = rows & np.isfinite(values)
    place = nodes.sample[chosen] * shape[1] + nodes.stage[chosen]
    total = np.bincount(place, values[chosen], minlength=shape[0] * shape[1]).reshape(shape)
    count = np.bincount(place, minlength=shape[0] * shape[1]).reshape(shape)
    has_none = (count == 0) & (column in ("parallelism", "buffer_limit"))
    return np.asarray(np.where(has_none, np.nan, total), np.float64)


def _mean_over_samples(nodes: NodeRows, column: str, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the mean over time of a stage's sum, shape (stages,); each sample stands for the time before it."""
    values = _by_sample(nodes, column, rows)
    weight = np.diff(nodes.times_ns, prepend=nodes.times_ns[:1]).astype(np.float64)[:, None]
    weight = np.where(np.isfinite(values), weight if weight.sum() else 1.0, 0.0)
    weight[: nodes.sample[rows].min()] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((np.nan_to_num(values) * weight).sum(axis=0) / weight.sum(axis=0))


def _last_rows(nodes: NodeRows) -> IntArray:
    """Return the latest row of each stage, shape (stages,)."""
    last = np.empty(len(nodes.paths), np.int64)
    order = np.argsort(nodes.sample, kind="stable")
    last[nodes.stage[order]] = order
    return last


def _timeline(nodes: NodeRows, origin_ns: int) -> pa.Table:
    samples, stages = len(nodes.times_ns), len(nodes.paths)
    kept = np.unique(np.linspace(0, samples - 1, min(samples, MAX_SAMPLES)).astype(np.int64))
    everything = np.ones(len(nodes.stage), np.bool_)
    columns = {
        name: _by_sample(nodes, name, everything)[kept].reshape(-1)
        for name in ("parallelism", "buffered_elements", "buffered_bytes", "buffer_limit")
    }
    place = nodes.sample * stages + nodes.stage
    made = np.bincount(place, nodes.elements, minlength=samples * stages).reshape(samples, stages)
    total = np.concatenate((np.zeros((1, stages)), np.cumsum(made, axis=0)))[np.append(0, kept + 1)]
    return tables.build(
        STAGE_TIMELINE,
        len(kept) * stages,
        time_ns=np.repeat(nodes.times_ns[kept] - origin_ns, stages),
        stage=np.tile(np.arange(stages), len(kept)),
        elements=np.diff(total, axis=0).reshape(-1),
        **{name: finite(values) for name, values in columns.items()},
    )


def _last_change(nodes: NodeRows, origin_ns: int) -> int | None:
    """Return when a node's tuned parameter differed from what it was one sample before."""
    changed: list[int] = []
    for value, tuned in (("parallelism", "parallelism_tuned"), ("buffer_limit", "buffer_tuned")):
        values = tables.floats(nodes.table, value)
        mine = tables.valid(nodes.table, tuned) & tables.bools(nodes.table, tuned)
        node = tables.ints(nodes.table, "node")
        order = np.lexsort((nodes.sample, node))
        order = order[mine[order]]
        differs = (node[order][1:] == node[order][:-1]) & (values[order][1:] != values[order][:-1])
        changed += nodes.times_ns[nodes.sample[order[1:][differs]]].tolist()
    return max(changed) - origin_ns if changed else None


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def sampled_after(model: LiveModel, start_ns: int) -> LiveModel:
    """Return the model if it is about what came after some moment; with too few samples there it is about the whole run.

    Raises:
        TraceIncompleteError: It is not.
    """
    if model.start_ns < start_ns:
        raise TraceIncompleteError(NOT_SAMPLED)
    return model


def _measure(job: JobView) -> LiveModel:
    return measure_model(job.tables.model, job.tables.steps, job.origin_ns)


def _of_later(model: LiveModel, view: LaterView) -> LiveModel:
    return sampled_after(model, view.start_ns)


def _to_json(model: LiveModel) -> Document:
    return {
        "samples": model.samples,
        "start_ms": to_ms(model.start_ns),
        "end_ms": to_ms(model.end_ns),
        "batches": model.batches,
        "cpu_budget": model.cpu_budget,
        "ram_budget_bytes": model.ram_budget_bytes,
        "peak_bytes": model.peak_bytes,
        "last_change_ms": to_ms(model.last_change_ns),
        "stages": [_stage_to_json(stage) for stage in model.stages],
    }


def _stage_to_json(stage: StageWork) -> Document:
    return {
        "path": stage.path,
        "parent": stage.parent,
        "visits_per_batch": stage.visits_per_batch,
        "self_ms": to_ms(stage.self_ns),
        "work_ms": to_ms(stage.work_ns),
        "elements": stage.elements,
        "element_bytes": stage.element_bytes,
        "parallelism": stage.parallelism,
        "parallelism_tuned": stage.parallelism_tuned,
        "cycle_length": stage.cycle_length,
        "buffer_limit": stage.buffer_limit,
        "buffer_tuned": stage.buffer_tuned,
        "buffered_elements": stage.buffered_elements,
        "buffered_bytes": stage.buffered_bytes,
        "peak_bytes": stage.peak_bytes,
        "asynchronous": stage.is_asynchronous,
    }


LIVE_MODEL = Analysis(LiveModel, per_job=PerJob(_measure, NO_MODEL, later=_of_later), to_json=_to_json)
