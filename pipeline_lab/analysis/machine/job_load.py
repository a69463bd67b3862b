"""What a job used of its machine, and what others did meanwhile: the processor's part of any verdict and prediction."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.intervals import EMPTY, IntArray, length_within
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.columns import BoolArray
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, JobView, PerJob, as_it_is, to_ms
from pipeline_lab.analysis.steps.iterator_ends import end_spans
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.analysis.steps.step_rows import StepRows, divide_time, plain_steps
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from pipeline_lab.runs.run_documents import WrittenPipeline
from pipeline_lab.units import NS_PER_S

NO_LOAD = (
    "The job's processor time is only known for runs of Pipeline Lab that were sampled while they made steps; launch a longer "
    "one with `pipeline-lab run`, or watch one for longer."
)

LONG_STEP_NS = NS_PER_S
"""A step this long takes hardly more of the processor while it is recorded; where windows hold every step, such ones count."""


@dataclass(frozen=True)
class JobLoad:
    """Processor and threads.

    Attributes:
        cores: N, the cores that affinity and cgroup allow the job.
        pool_threads: Q, threads that run the pipeline's user functions; None if unknown.
        cores_used: Cores that the job kept busy, with the processes that it started.
        children_cores: What those processes kept busy of them.
        cpu_ns_per_step: C, processor time of the whole job per step, all its threads and processes together.
        other_cores: L, cores that others kept busy meanwhile.
    """

    cores: float
    pool_threads: int | None
    cores_used: float
    cpu_ns_per_step: float
    other_cores: float
    children_cores: float = 0.0


def measure_load(
    environment: Mapping[str, Any],
    written: WrittenPipeline | None,
    steps: pa.Table,
    resources: pa.Table,
    asleep: IntArray = EMPTY,
    rows: StepRows | None = None,
) -> JobLoad:
    """Average what was sampled while steps ran that no profile window touched, or that are long.

    Args:
        environment: Of the run's record.
        written: The pipeline as written, which knows its threads.
        steps: Of schema ``runs.run_tables.STEPS``.
        resources: Of schema ``runs.run_tables.RESOURCES``.
        asleep: When the job waited for iterators to end, shape (n, 2), ns since the epoch: that is left out.
        rows: What :func:`divide_time` returned for these steps, where it was called before.

    Raises:
        TraceIncompleteError: There is no such sample, or the record does not tell the cores.
    """
    rows = rows or divide_time(steps)
    plain = plain_steps(steps)
    if not plain.any():
        plain = ~tables.bools(steps, "warmup") & (rows.step_ns >= LONG_STEP_NS)
    start_ns, length_ns = rows.start_ns[plain], rows.step_ns[plain]
    time_ns = tables.ints(resources, "time_ns")
    step = np.searchsorted(start_ns, time_ns, side="right") - 1
    inside = (step >= 0) & ~tables.bools(resources, "flushing")
    inside[inside] = time_ns[inside] < (start_ns + length_ns)[step[inside]]
    if len(asleep):
        sampled = np.stack((np.append(time_ns[:1], time_ns[:-1]), time_ns), axis=1)
        awake = inside & (length_within(asleep, sampled) == 0)
        inside = awake if awake.any() else inside
        length_ns = length_ns - length_within(asleep, np.stack((start_ns, start_ns + length_ns), axis=1))
    return _average(environment, None if written is None else written.pool_threads, resources, inside, length_ns)


def measure_recorded_load(
    environment: Mapping[str, Any], recorded: Steps, resources: pa.Table, origin_ns: int
) -> JobLoad:
    """Average what was sampled from the first recorded step to the last one: of jobs that do not time their steps.

    Args:
        environment: Of the run's record.
        recorded: The steps of all windows.
        resources: Of schema ``runs.run_tables.RESOURCES``.
        origin_ns: Zero of the diagnosis' axis, ns since the epoch.

    Raises:
        TraceIncompleteError: As for :func:`measure`.
    """
    spans = tables.intervals(recorded.table) + origin_ns
    time_ns = tables.ints(resources, "time_ns")
    inside = (time_ns >= spans.min()) & (time_ns <= spans.max()) & ~tables.bools(resources, "flushing")
    return _average(environment, None, resources, inside, recorded.training_step_ns)


def _average(
    environment: Mapping[str, Any],
    pool_threads: int | None,
    resources: pa.Table,
    inside: BoolArray,
    length_ns: NDArray[np.float64] | IntArray,
) -> JobLoad:
    if not inside.any() or "cores" not in environment:
        raise TraceIncompleteError(NO_LOAD)
    columns = ("cpu_percent", "children_cpu_percent", "other_cpu_percent")
    own, children, other = (tables.floats(resources, name)[inside] / 100 for name in columns)
    started = np.where(np.isfinite(children), children, 0.0)  # runs that did not tell counted them among the others
    cores_used = float((own + started).mean())
    return JobLoad(
        cores=float(environment["cores"]),
        pool_threads=pool_threads,
        cores_used=cores_used,
        cpu_ns_per_step=cores_used * float(length_ns.mean()),
        other_cores=float(other.mean()),
        children_cores=float(started.mean()),
    )


def other_cpu_percent(resources: pa.Table) -> float | None:
    """Return what other processes took on average during the job, 100 for one core; None if unknown."""
    other = tables.floats(resources, "other_cpu_percent")
    return float(np.nanmean(other)) if np.isfinite(other).any() else None


def _measure(job: JobView) -> JobLoad:
    found = job.tables
    if found.times_steps or isinstance(job.recorded, Unavailable):
        ends = end_spans(found.events)
        return measure_load(found.environment, found.written, found.steps, found.resources, ends, found.step_rows)
    return measure_recorded_load(found.environment, job.recorded, found.resources, job.origin_ns)


def _to_json(load: JobLoad) -> Document:
    return {
        "cores": load.cores,
        "pool_threads": load.pool_threads,
        "cores_used": load.cores_used,
        "children_cores": load.children_cores,
        "other_cores": load.other_cores,
        "cpu_ms_per_step": to_ms(load.cpu_ns_per_step),
    }


JOB_LOAD = Analysis(JobLoad, per_job=PerJob(_measure, NO_LOAD, later=as_it_is), to_json=_to_json)
