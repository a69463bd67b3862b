"""The numbers that the rules about slow input look at: the blamed stage, processor time, step, overlap."""

from dataclasses import dataclass

from pipeline_lab.analysis.results import Results
from pipeline_lab.analysis.tf_data.kinds import is_asynchronous
from pipeline_lab.analysis.tf_data.results import Stage, TfData
from pipeline_lab.errors import Unavailable

ROOTS = frozenset({"Root", "Model"})
PER_FILE = frozenset({"FlatMap", "Interleave", "ParallelInterleaveV2", "ParallelInterleaveV3", "ParallelInterleaveV4"})
"""Iterators that open one dataset for each file, shard or generator."""

PYTHON_OPS = frozenset({"PyFunc", "EagerPyFunc", "PyFuncStateless"})


LEAST_CORES = 0.1
"""What a job always gets of a machine that others fill."""

MOSTLY_UNSEEN = 0.5
"""A trace that does not show what this part of the wait was for cannot blame a stage by it."""


@dataclass(frozen=True)
class InputFacts:
    """What is known of a job that waits for input.

    Attributes:
        pipeline: The pipeline that ran.
        stage: The stage to blame: the one behind most of the exposed wait.
        exposed_share: Its part of that wait, 0 to 1.
        waiting_share: Exposed wait over the step, 0 to 1.
        cpu_share: Processor time of the job over what others left it of the allowed cores, 0 to 1; None if unknown.
        own_share: The same over all allowed cores, 0 to 1; None if unknown.
        cores_used: Cores that the job kept busy; None if unknown.
    """

    pipeline: TfData
    stage: Stage
    exposed_share: float
    waiting_share: float
    cpu_share: float | None
    own_share: float | None
    cores_used: float | None

    def above(self) -> list[Stage]:
        """Return the stages between the blamed one and the training step, the nearest first."""
        found, parent = [], self.stage.parent
        while parent is not None:
            found.append(self.pipeline.stages[parent])
            parent = found[-1].parent
        return found

    @property
    def is_reader(self) -> bool:
        """Say whether the stage makes the records: a leaf, or one that runs once for each file."""
        if not self.pipeline.children(self.stage.number):
            return True
        return self.stage.name in PER_FILE or any(stage.name in PER_FILE for stage in self.above())

    @property
    def python_share(self) -> float:
        """Part of the stage's work that is Python, 0 to 1."""
        python_ns = sum(op.self_ns for op in self.stage.operations if op.name in PYTHON_OPS)
        work_ns = max(self.stage.work_ns, sum(op.self_ns for op in self.stage.operations))
        return python_ns / work_ns if work_ns else 0.0

    @property
    def python_cores(self) -> float:
        """Threads that the stage's Python kept, on average."""
        python_ns = sum(op.self_ns for op in self.stage.operations if op.name in PYTHON_OPS)
        return python_ns / self.stage.observed_ns if self.stage.observed_ns else 0.0


def works_ahead(pipeline: TfData) -> bool:
    """Say whether the last stage prepares elements while the step runs: what ran, not what was written."""
    last = [stage for stage in pipeline.stages if stage.parent is None or pipeline.stages[stage.parent].name in ROOTS]
    return any(is_asynchronous(stage.name) for stage in last)


def gather(results: Results, waiting_share: float) -> InputFacts | None:
    """Collect the facts; None where nothing is known of the pipeline.

    The stage to blame is the one behind most of the exposed wait. Where the trace began too late to show what most of
    the wait was for, it is the stage that takes longest for what it did, the calls that may run at once reckoned with.
    """
    pipeline = results.tf_data
    if isinstance(pipeline, Unavailable):
        return None
    blamed, share = _behind_the_wait(pipeline)
    if blamed is None:
        blamed, share = _slowest(pipeline)
    if blamed is None:
        return None
    return InputFacts(pipeline, blamed, share, waiting_share, *_processor(results))


def _behind_the_wait(pipeline: TfData) -> tuple[Stage | None, float]:
    path = pipeline.critical_path
    if isinstance(path, Unavailable) or pipeline.bottleneck is None:
        return None, 0.0
    if path.unseen_ns > MOSTLY_UNSEEN * path.exposed_ns:
        return None, 0.0
    share = path.exposed_by_stage()[pipeline.bottleneck] / path.exposed_ns
    return pipeline.stages[pipeline.bottleneck], share


def _slowest(pipeline: TfData) -> tuple[Stage | None, float]:
    """Return the stage with the longest time for its work, and its part of the time of all."""
    times = [stage.work_ns / _calls_at_once(stage, pipeline) for stage in pipeline.stages]
    if not sum(times):
        return None, 0.0
    longest = max(range(len(times)), key=times.__getitem__)
    return pipeline.stages[longest], times[longest] / sum(times)


def _calls_at_once(stage: Stage, pipeline: TfData) -> int:
    allowed = stage.parallelism or 1
    return max(1, allowed if pipeline.threadpool_size is None else min(allowed, pipeline.threadpool_size))


def _processor(results: Results) -> tuple[float | None, float | None, float | None]:
    load, job = results.job_load, results.job_steps
    if isinstance(load, Unavailable) or isinstance(job, Unavailable) or not job.median_ns:
        return None, None, None
    used = load.cpu_ns_per_step / job.median_ns
    return used / max(LEAST_CORES, load.cores - load.other_cores), used / load.cores, used
