"""What is known of the stage that an input-bound job waits for, and what each change would gain.

Where we ran the job ourselves, tf.data's own model tells how long each stage takes for a batch, and the longest is to
blame. Of other logs the trace tells what the job waited for.

Where nothing works ahead, a step takes what its input takes and then the rest. Overlap leaves the longer of the two;
``k`` times as many calls at once leave the rest and the input, of which the stage's part is divided by ``k``. Neither
makes the job do with fewer cores than it keeps busy.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.input.live_model import StageWork
from pipeline_lab.analysis.input.model_nodes import REFILLED, SEPARATOR
from pipeline_lab.analysis.input.pipeline_stages import PipelineStage, join_stages, plain_path, trace_path
from pipeline_lab.analysis.results import Results
from pipeline_lab.analysis.tf_data.iterator_places import is_upstream
from pipeline_lab.analysis.tf_data.kinds import is_asynchronous
from pipeline_lab.analysis.tf_data.tf_data import TfData, TracedStage
from pipeline_lab.analysis.tf_data.written_words import ROOTS, name_stage
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.run_documents import WrittenCall

HANDING_ON = ROOTS | {"Prefetch"}
"""Stages that only hand elements on: what they seem to work is time in which other programs had the core."""
PER_FILE = frozenset(
    {
        "FlatMap",
        "Interleave",
        "LegacyParallelInterleaveV2",
        "ParallelInterleaveV2",
        "ParallelInterleaveV3",
        "ParallelInterleaveV4",
    }
)
"""Iterators that open one dataset for each file, shard or generator."""

PYTHON_OPS = frozenset({"PyFunc", "EagerPyFunc", "PyFuncStateless"})

LEAST_CORES = 0.1
"""What a job always gets of a machine that others fill."""

MOSTLY_BESIDE = 0.5
"""A device that does this part of its work while the loop waits for a batch is ahead of the loop already: that is what prefetch is for."""

MOSTLY_UNSEEN = 0.5
"""A trace that does not show what this part of the wait was for cannot blame a stage by it, nor can a model of less work than
that."""


@dataclass(frozen=True)
class Blamed:
    """The stage to blame, as the model and the trace know it; one of the two may be missing.

    Attributes:
        path: Iterators from the root down to it.
        share: Its part of the exposed wait, or of the time that all stages need for a batch, 0 to 1.
        work: What the model says.
        seen: What the trace says.
        calls: What the user wrote for it; none where that is not known.
        python_exposed_share: Part of the exposed wait that its Python fills, 0 to 1; None where no trace tells.
        calls_per_batch: Calls of its function for one batch; None where no trace tells.
        filled_by: What the user wrote for the stage that works most to fill its buffer; none where it fills none, or nobody knows.
    """

    path: str
    share: float
    work: StageWork | None
    seen: TracedStage | None
    calls: tuple[WrittenCall, ...] = ()
    python_exposed_share: float | None = None
    calls_per_batch: float | None = None
    filled_by: tuple[WrittenCall, ...] = ()

    @property
    def name(self) -> str:
        return self.path.rpartition(SEPARATOR)[2]

    @property
    def words(self) -> str:
        """The stage as the user knows it: by the lines of a script, else by its iterator."""
        return name_stage(self.calls, self.name)

    @property
    def parallelism(self) -> float | None:
        """Calls that it may have under way; None for a serial stage."""
        if self.work is not None and self.work.parallelism is not None:
            return self.work.parallelism
        return None if self.seen is None else self.seen.parallelism

    @property
    def is_reader(self) -> bool:
        """Say whether the stage makes the records: it runs once for each file, or opens the files."""
        return not PER_FILE.isdisjoint(self.path.split(SEPARATOR))

    @property
    def python_ns(self) -> int:
        """Time of threads in Python functions, as far as the trace shows it."""
        operations = () if self.seen is None else self.seen.operations
        return sum(op.self_ns for op in operations if op.name in PYTHON_OPS)

    @property
    def python_share(self) -> float:
        """Part of the time of all ops in the stage that is Python, 0 to 1."""
        total_ns = 0 if self.seen is None else sum(op.self_ns for op in self.seen.operations)
        return self.python_ns / total_ns if total_ns else 0.0


@dataclass(frozen=True)
class Processor:
    """Processor time of the job.

    Attributes:
        cores_used: Cores that the job kept busy.
        own_share: The same over all cores that it may use, 0 to 1.
        left_share: The same over what others left of them; beyond 1 where others took more at times.
        children_cores: Cores that processes kept busy which the job started, such as those of a Python generator.
        cores: That the job may use.
        other_cores: That other programs kept busy.
    """

    cores_used: float
    own_share: float
    left_share: float
    children_cores: float = 0.0
    cores: float = 0.0
    other_cores: float = 0.0

    @property
    def process_cores(self) -> float:
        """Cores that the training process itself kept busy."""
        return self.cores_used - self.children_cores


@dataclass(frozen=True)
class InputFacts:
    """What is known of a job that waits for input.

    Attributes:
        blamed: The stage to blame.
        waiting_share: Exposed wait over the step, 0 to 1.
        works_ahead: Whether elements are prepared while the step runs, by the last stage or because the loop does not wait for the
            device: what ran, not what was written.
        processor: None if unknown.
        pool_threads: Threads that run the pipeline's functions; None if unknown.
        pool_busy_share: How busy they were, 0 to 1; None if unknown.
        step_ns: Median step of the whole job; None for a log.
        starting_share: Part of the wait at the beginnings of epochs, beyond what other steps wait, 0 to 1.
    """

    blamed: Blamed
    waiting_share: float
    works_ahead: bool
    processor: Processor | None
    pool_threads: int | None
    pool_busy_share: float | None
    step_ns: float | None
    starting_share: float = 0.0


@dataclass(frozen=True)
class LoopSetup:
    """How a pass over the data begins in a loop inside a function.

    Attributes:
        begin_ns: What the first step of a pass waits, beyond what others do, mean.
        request_ns: The longest request for a batch in the windows, in which passes begin.
    """

    begin_ns: float
    request_ns: float


REQUESTED_SHARE = 0.5
"""Of what a pass begins with: where no request takes as long, most of it is no work of the pipeline."""

MOSTLY_STARTING = 0.5
"""From this part of the wait on, what starts again with each epoch is to blame, and not what works in between."""


def gather(results: Results, waiting_share: float) -> InputFacts | None:
    """Collect the facts; None where nothing is known of the pipeline's stages."""
    pipeline = None if isinstance(results.tf_data, Unavailable) else results.tf_data
    works = () if isinstance(results.live_model, Unavailable) else results.live_model.stages
    load = None if isinstance(results.job_load, Unavailable) else results.job_load
    pool_threads = load.pool_threads if load is not None else None
    if pool_threads is None and pipeline is not None:
        pool_threads = pipeline.threadpool_size
    step_ns = None if isinstance(results.job_steps, Unavailable) else results.job_steps.median_ns
    starting_share = _starting_share(results, waiting_share)
    blamed = _refilled(results, starting_share) if starting_share >= MOSTLY_STARTING else None
    if blamed is None:
        blamed = _blame(results, works, pool_threads, None if step_ns is None else waiting_share * step_ns)
        starting_share = 0.0
    if blamed is None:
        return None
    blamed = replace(
        blamed,
        calls=_calls(results, blamed.path),
        python_exposed_share=_python_exposed_share(pipeline, blamed.seen),
        calls_per_batch=_calls_per_batch(pipeline, blamed.seen),
    )
    return InputFacts(
        blamed=blamed,
        waiting_share=waiting_share,
        works_ahead=_works_ahead(pipeline, works) or _works_beside_waits(results),
        processor=_processor(results),
        pool_threads=pool_threads,
        pool_busy_share=None if pipeline is None else pipeline.pool_busy_share,
        step_ns=step_ns,
        starting_share=starting_share,
    )


def _starting_share(results: Results, waiting_share: float) -> float:
    """Return the part of the wait that the beginnings of epochs are."""
    phases = results.step_phases
    boundaries = None if isinstance(phases, Unavailable) else phases.boundaries
    return 0.0 if boundaries is None or not waiting_share else min(1.0, boundaries.share / waiting_share)


def find_setup(results: Results, waiting_share: float) -> LoopSetup | None:
    """Return how passes begin in a loop inside a function, if most of the wait is at their beginnings and no recorded request for a batch explains it."""
    steps, stalls, phases = results.steps, results.input_stalls, results.step_phases
    if isinstance(steps, Unavailable) or isinstance(stalls, Unavailable) or isinstance(phases, Unavailable):
        return None
    boundaries = phases.boundaries
    if boundaries is None or not boundaries.count or not steps.is_in_function:
        return None
    if _starting_share(results, waiting_share) < MOSTLY_STARTING:
        return None
    in_pass = sum(phase.steps for phase in phases.phases) / (boundaries.count + 1)
    requests = tables.intervals(stalls.table)
    hosts, _ = tables.name_numbers(steps.table, ("host",))
    in_window = np.bincount(tables.ints(steps.table, "window")).max(initial=0) / max(1, len(hosts))
    if in_window <= in_pass or not len(requests):  # perhaps no pass begins in a window
        return None
    setup = LoopSetup(boundaries.wait_ns / boundaries.count, float((requests[:, 1] - requests[:, 0]).max()))
    return setup if setup.request_ns < REQUESTED_SHARE * setup.begin_ns else None


def _refilled(results: Results, share: float) -> Blamed | None:
    """Return the stage that fills its buffer again in each epoch: the last shuffle; None where there is none."""
    stages = join_stages(results.tf_data, results.live_model, results.written)
    stages = () if isinstance(stages, Unavailable) else stages
    for stage in stages:
        if stage.name in REFILLED:
            return Blamed(stage.path, share, None, stage.traced, filled_by=_filled_by(stages, stage.path))
    return None


def _filled_by(stages: Sequence[PipelineStage], path: str) -> tuple[WrittenCall, ...]:
    """Return the calls of the stage upstream of a buffer that works most for it, if that is more than the stages at the buffer do."""
    upstream = [stage for stage in stages if is_upstream(stage.path, path) and stage.written]
    most = max(upstream, key=lambda stage: _time_for_one(stage), default=None)
    return () if most is None or not _time_for_one(most) else most.written


def _time_for_one(stage: PipelineStage) -> float:
    """Return the time that an element of a stage takes, with the calls that run at once, ns."""
    if not stage.visits_per_batch:
        return 0.0
    return stage.work_ns / stage.visits_per_batch / max(1.0, stage.parallelism or 1.0)


def _blame(
    results: Results, works: tuple[StageWork, ...], pool_threads: int | None, wait_ns: float | None
) -> Blamed | None:
    if works and (wait_ns is None or sum(work.work_ns for work in works) >= MOSTLY_UNSEEN * wait_ns):
        return _longest_work(results, works, pool_threads)
    pipeline = results.tf_data
    if isinstance(pipeline, Unavailable):
        return None
    path = pipeline.critical_path
    if isinstance(path, Unavailable):
        return None if works else _most_traced_work(pipeline, pool_threads)
    if pipeline.bottleneck is None or path.unseen_ns > MOSTLY_UNSEEN * path.exposed_ns:
        return None
    seen = pipeline.stages[pipeline.bottleneck]
    return Blamed(seen.path, pipeline.caused_ns[seen.number] / path.exposed_ns, None, seen)


def _most_traced_work(pipeline: TfData, pool_threads: int | None) -> Blamed | None:
    """Find the stage that takes longest, of windows that show no waits, as of a loop inside of ``tf.function``."""
    working = [stage for stage in pipeline.stages if stage.name not in HANDING_ON]
    times = [stage.work_ns / _at_once(stage.parallelism, pool_threads) for stage in working]
    if not sum(times):
        return None
    most = max(range(len(times)), key=times.__getitem__)
    return Blamed(working[most].path, times[most] / sum(times), None, working[most])


def _calls(results: Results, path: str) -> tuple[WrittenCall, ...]:
    stages = join_stages(results.tf_data, results.live_model, results.written)
    found = () if isinstance(stages, Unavailable) else stages
    same = (path, trace_path(path))
    return next((stage.written for stage in found if stage.path in same or plain_path(stage.path) in same), ())


def _python_exposed_share(pipeline: TfData | None, seen: TracedStage | None) -> float | None:
    if (
        pipeline is None
        or seen is None
        or isinstance(path := pipeline.critical_path, Unavailable)
        or not path.exposed_ns
    ):
        return None
    mine = [share for share in path.shares if share.stage == seen.number and share.what in PYTHON_OPS]
    return sum(share.exposed_ns for share in mine) / path.exposed_ns


def _calls_per_batch(pipeline: TfData | None, seen: TracedStage | None) -> float | None:
    if pipeline is None or seen is None or not seen.function_calls:
        return None
    batches = max((stage.elements for stage in pipeline.stages if stage.parent is None), default=0)
    return seen.function_calls / batches if batches else None


def _longest_work(results: Results, works: tuple[StageWork, ...], pool_threads: int | None) -> Blamed | None:
    """Find the longest stage of the call whose stages take longest for a batch, considering the calls that really run at once."""
    times = [work.work_ns / _calls_at_once(work, pool_threads) for work in works]
    stages_of: dict[object, list[int]] = {}
    for number, work in enumerate(works):
        if work.name not in HANDING_ON:
            stages_of.setdefault(_calls(results, work.path) or number, []).append(number)
    longest = max(stages_of.values(), key=lambda numbers: sum(times[each] for each in numbers), default=[])
    took = sum(times[number] for number in longest)
    if not took:
        return None
    work = works[max(longest, key=times.__getitem__)]
    stages = () if isinstance(results.tf_data, Unavailable) else results.tf_data.stages
    seen = next((stage for stage in stages if stage.path == work.path), None)
    return Blamed(work.path, took / sum(times), work, seen)


def _calls_at_once(work: StageWork, pool_threads: int | None) -> float:
    return _at_once(work.parallelism, pool_threads)


def _at_once(parallelism: float | None, pool_threads: int | None) -> float:
    allowed = parallelism or 1.0
    return max(1.0, allowed if pool_threads is None else min(allowed, float(pool_threads)))


def _works_ahead(pipeline: TfData | None, works: tuple[StageWork, ...]) -> bool:
    if works:
        return any(work.is_asynchronous for work in works if work.parent is None or works[work.parent].name in ROOTS)
    stages = () if pipeline is None else pipeline.stages
    last = [stage for stage in stages if stage.parent is None or stages[stage.parent].name in ROOTS]
    return any(is_asynchronous(stage.name) for stage in last)


def _works_beside_waits(results: Results) -> bool:
    """Say whether the device does most of its work while the loop waits: launched without waiting for it, a step overlaps its input."""
    stalls, breakdown = results.input_stalls, results.step_breakdown
    if isinstance(stalls, Unavailable) or isinstance(breakdown, Unavailable):
        return False
    works_ns = breakdown.device_compute_ns + breakdown.device_copy_ns
    return breakdown.device_compute_ns > 0 and stalls.wait_ns - stalls.exposed_ns >= MOSTLY_BESIDE * works_ns


def _processor(results: Results) -> Processor | None:
    load = results.job_load
    if isinstance(load, Unavailable):
        return None
    left = max(LEAST_CORES, load.cores - load.other_cores)
    own_share, left_share = load.cores_used / load.cores, load.cores_used / left
    return Processor(load.cores_used, own_share, left_share, load.children_cores, load.cores, load.other_cores)


LEAST_AT_ONCE = 2.0
"""Times as many calls as now, where the pool's threads are not known or all taken: a pool can be made larger."""


def overlap_gain(facts: InputFacts) -> float:
    """Return the share of the step that working ahead would save at best, 0 to 1; 0 where a stage does so already."""
    return 0.0 if facts.works_ahead else _beside_step(facts.waiting_share, facts.processor)


def beside_step(results: Results, waiting_share: float) -> float:
    """Return the same of a job of whose pipeline nothing is known."""
    return _beside_step(waiting_share, _processor(results))


def _beside_step(waiting_share: float, processor: Processor | None) -> float:
    return min(waiting_share, 1.0 - waiting_share, _idle_cores(processor))


def parallel_gain(facts: InputFacts) -> float:
    """Return the share of the step that more calls at once in the blamed stage would save at best, 0 to 1."""
    saved = facts.waiting_share * facts.blamed.share * (1.0 - 1.0 / times_as_many(facts))
    return min(saved, _idle_cores(facts.processor))


def times_as_many(facts: InputFacts) -> float:
    """Return how many times as many calls of the blamed stage the pool's threads could run."""
    return max(LEAST_AT_ONCE, (facts.pool_threads or 0) / max(1.0, facts.blamed.parallelism or 1.0))


def _idle_cores(processor: Processor | None) -> float:
    """Return the share of the cores that the job leaves idle, 1 where that is not known."""
    return 1.0 if processor is None else max(0.0, 1.0 - processor.own_share)
