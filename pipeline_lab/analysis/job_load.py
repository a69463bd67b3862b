"""What a job used of its machine, and what others did meanwhile: the processor's part of any prediction."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.job_steps import periods, plain_steps
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.written import WrittenPipeline

NO_LOAD = (
    "The job's processor time is only known for runs of Pipeline Lab that made steps outside of profile windows; "
    "launch a longer one with `pipeline-lab run`."
)


@dataclass(frozen=True)
class JobLoad:
    """Processor and threads.

    Attributes:
        cores: N, the cores that affinity and cgroup allow the job.
        pool_threads: Q, threads that run the pipeline's user functions; None if unknown.
        cpu_ns_per_step: C, processor time of the whole job per step, all its threads together.
        other_cores: L, cores that others kept busy meanwhile.
    """

    cores: float
    pool_threads: int | None
    cpu_ns_per_step: float
    other_cores: float


def measure(
    environment: Mapping[str, Any], written: WrittenPipeline | None, steps: pa.Table, resources: pa.Table
) -> JobLoad:
    """Average what was sampled while steps ran that no profile window touched.

    Args:
        environment: Of the run's record.
        written: The pipeline as written, which knows its threads.
        steps: Of schema ``runs.tables.STEPS``.
        resources: Of schema ``runs.tables.RESOURCES``.

    Raises:
        TraceIncompleteError: There is no such sample, or the record does not tell the cores.
    """
    plain = plain_steps(steps)
    start_ns = tables.ints(steps, "start_ns")[plain]
    time_ns = tables.ints(resources, "time_ns")
    step = np.searchsorted(start_ns, time_ns, side="right") - 1
    length_ns = periods(steps)[plain]
    inside = (step >= 0) & ~tables.bools(resources, "flushing")
    inside[inside] = time_ns[inside] < (start_ns + length_ns)[step[inside]]
    if not inside.any() or "cores" not in environment:
        raise TraceIncompleteError(NO_LOAD)
    own, other = (tables.floats(resources, name)[inside].mean() / 100 for name in ("cpu_percent", "other_cpu_percent"))
    return JobLoad(
        cores=float(environment["cores"]),
        pool_threads=None if written is None else written.pool_threads,
        cpu_ns_per_step=float(own * length_ns.mean()),
        other_cores=float(other),
    )
