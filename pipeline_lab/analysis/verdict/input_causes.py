"""Why the stage that an input-bound job waits for is slow: the facts, what each change would gain, one small rule per cause.

Where we ran the job ourselves, tf.data's own model tells how long each stage takes for a batch, and the longest is to
blame. Of other logs the trace tells what the job waited for.

Where nothing works ahead, a step takes what its input takes and then the rest. Overlap leaves the longer of the two;
``k`` times as many calls at once leave the rest and the input, of which the stage's part is divided by ``k``. Neither
makes the job do with fewer cores than it keeps busy.

The rules follow from tf.data's own model: a parallel stage takes its work divided by the calls that really run at once;
those are limited by what it is allowed, by the threads of its pool and by the cores. Thresholds are those that real jobs
with a planted cause were set on (``benchmarks/verdict``, set ``tune``), within the bounds that the comments name.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pipeline_lab.analysis.causes import InputCause
from pipeline_lab.analysis.input.live_model import StageWork
from pipeline_lab.analysis.input.model_nodes import SEPARATOR
from pipeline_lab.analysis.input.pipeline_stages import join_stages, trace_path
from pipeline_lab.analysis.results import Results
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.tf_data.kinds import is_asynchronous
from pipeline_lab.analysis.tf_data.tf_data import TfData, TracedStage
from pipeline_lab.analysis.tf_data.written_words import ROOTS, name_python, name_stage
from pipeline_lab.analysis.verdict.verdict import Blame, Evidence
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.run_documents import WrittenCall
from pipeline_lab.units import format_count, format_duration, format_percent

PER_FILE = frozenset({"FlatMap", "Interleave", "ParallelInterleaveV2", "ParallelInterleaveV3", "ParallelInterleaveV4"})
"""Iterators that open one dataset for each file, shard or generator."""

PYTHON_OPS = frozenset({"PyFunc", "EagerPyFunc", "PyFuncStateless"})

LEAST_CORES = 0.1
"""What a job always gets of a machine that others fill."""

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
    """

    path: str
    share: float
    work: StageWork | None
    seen: TracedStage | None
    calls: tuple[WrittenCall, ...] = ()
    python_exposed_share: float | None = None

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
    """

    cores_used: float
    own_share: float
    left_share: float
    children_cores: float = 0.0

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
        works_ahead: Whether the last stage prepares elements while the step runs: what ran, not what was written.
        processor: None if unknown.
        pool_threads: Threads that run the pipeline's functions; None if unknown.
        pool_busy_share: How busy they were, 0 to 1; None if unknown.
        step_ns: Median step of the whole job; None for a log.
    """

    blamed: Blamed
    waiting_share: float
    works_ahead: bool
    processor: Processor | None
    pool_threads: int | None
    pool_busy_share: float | None
    step_ns: float | None


def gather(results: Results, waiting_share: float) -> InputFacts | None:
    """Collect the facts; None where nothing is known of the pipeline's stages."""
    pipeline = None if isinstance(results.tf_data, Unavailable) else results.tf_data
    works = () if isinstance(results.live_model, Unavailable) else results.live_model.stages
    load = None if isinstance(results.job_load, Unavailable) else results.job_load
    pool_threads = load.pool_threads if load is not None else None
    if pool_threads is None and pipeline is not None:
        pool_threads = pipeline.threadpool_size
    step_ns = None if isinstance(results.job_steps, Unavailable) else results.job_steps.median_ns
    blamed = _blame(pipeline, works, pool_threads, None if step_ns is None else waiting_share * step_ns)
    if blamed is None:
        return None
    blamed = replace(
        blamed, calls=_calls(results, blamed.path), python_exposed_share=_python_exposed_share(pipeline, blamed.seen)
    )
    return InputFacts(
        blamed=blamed,
        waiting_share=waiting_share,
        works_ahead=_works_ahead(pipeline, works),
        processor=_processor(results),
        pool_threads=pool_threads,
        pool_busy_share=None if pipeline is None else pipeline.pool_busy_share,
        step_ns=step_ns,
    )


def _blame(
    pipeline: TfData | None, works: tuple[StageWork, ...], pool_threads: int | None, wait_ns: float | None
) -> Blamed | None:
    if works and (wait_ns is None or sum(work.work_ns for work in works) >= MOSTLY_UNSEEN * wait_ns):
        return _longest_work(pipeline, works, pool_threads)
    if pipeline is None:
        return None
    path = pipeline.critical_path
    if isinstance(path, Unavailable) or pipeline.bottleneck is None or path.unseen_ns > MOSTLY_UNSEEN * path.exposed_ns:
        return None
    seen = pipeline.stages[pipeline.bottleneck]
    return Blamed(seen.path, path.exposed_by_stage()[seen.number] / path.exposed_ns, None, seen)


def _calls(results: Results, path: str) -> tuple[WrittenCall, ...]:
    stages = join_stages(results.tf_data, results.live_model, results.written)
    found = () if isinstance(stages, Unavailable) else stages
    return next((stage.written for stage in found if stage.path in (path, trace_path(path))), ())


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


def _longest_work(pipeline: TfData | None, works: tuple[StageWork, ...], pool_threads: int | None) -> Blamed | None:
    """Find the stage that takes longest for a batch, considering the calls that really run at once."""
    times = [work.work_ns / _calls_at_once(work, pool_threads) for work in works]
    if not sum(times):
        return None
    work = works[max(range(len(times)), key=times.__getitem__)]
    stages = () if pipeline is None else pipeline.stages
    seen = next((stage for stage in stages if stage.path == work.path), None)
    return Blamed(work.path, max(times) / sum(times), work, seen)


def _calls_at_once(work: StageWork, pool_threads: int | None) -> float:
    allowed = work.parallelism or 1.0
    return max(1.0, allowed if pool_threads is None else min(allowed, float(pool_threads)))


def _works_ahead(pipeline: TfData | None, works: tuple[StageWork, ...]) -> bool:
    if works:
        return any(work.is_asynchronous for work in works if work.parent is None or works[work.parent].name in ROOTS)
    stages = () if pipeline is None else pipeline.stages
    last = [stage for stage in stages if stage.parent is None or stages[stage.parent].name in ROOTS]
    return any(is_asynchronous(stage.name) for stage in last)


def _processor(results: Results) -> Processor | None:
    load = results.job_load
    if isinstance(load, Unavailable):
        return None
    left = max(LEAST_CORES, load.cores - load.other_cores)
    return Processor(load.cores_used, load.cores_used / load.cores, load.cores_used / left, load.children_cores)


LEAST_AT_ONCE = 2.0
"""Times as many calls as now, where the pool's threads are not known or all taken: a pool can be made larger."""


def overlap_gain(facts: InputFacts) -> float:
    """Return the share of the step that working ahead would save at best, 0 to 1; 0 where a stage does so already."""
    if facts.works_ahead:
        return 0.0
    return min(facts.waiting_share, 1.0 - facts.waiting_share, _idle_cores(facts))


def parallel_gain(facts: InputFacts) -> float:
    """Return the share of the step that more calls at once in the blamed stage would save at best, 0 to 1."""
    saved = facts.waiting_share * facts.blamed.share * (1.0 - 1.0 / times_as_many(facts))
    return min(saved, _idle_cores(facts))


def times_as_many(facts: InputFacts) -> float:
    """Return how many times as many calls of the blamed stage the pool's threads could run."""
    return max(LEAST_AT_ONCE, (facts.pool_threads or 0) / max(1.0, facts.blamed.parallelism or 1.0))


def _idle_cores(facts: InputFacts) -> float:
    """Return the share of the cores that the job leaves idle, 1 where that is not known."""
    return 1.0 if facts.processor is None else max(0.0, 1.0 - facts.processor.own_share)


CLEAR_SHARE = 0.5
"""A stage that fills less of the wait than this is one of several."""

OVERLAP_TOLERANCE = 0.15
"""G + D within this share of the step, and both at least as large, means that they do not overlap."""

HIDDEN_SHARE = 0.5
"""Part of the wait that overlap has to hide to be what is missing: with less, the input is too slow all the same."""

PYTHON_SHARE = 0.5
"""Part of the stage's work that Python has to be."""

PYTHON_BUSY_SHARE = 0.8
"""Python that keeps a core busy for less than this of its time sleeps or waits: more calls at once would help it."""

PYTHON_STARVED_SHARE = 0.4
"""The same where other programs fill the cores: a thread that computes then waits for its turn about as long as it runs."""

CPU_FULL_SHARE = 0.85
"""Of the cores that others left; beyond that more threads bring nothing."""

CPU_OWN_SHARE = 0.4
"""Of all cores that the job may use; with less of them, others fill the machine and nothing can be said of the job."""

UNSTEADY_VARIATION = 1.0
"""Standard deviation over mean of the function's latency; an exponential distribution has 1."""

IDLE_SLOTS_SHARE = 0.7
"""A stage that is held up by its order has fewer calls under way than this part of what it is allowed."""

QUEUEING_SHARE = 0.3
POOL_FULL_SHARE = 0.8
"""How long calls queue, and how busy the pool's threads are, where the pool is the limit."""

POOL_EXPLAINS_SHARE = 0.5
"""Part of the step that the stage's work on all threads of the pool has to fill."""

GENERATOR = "Generator"


def find_blame(results: Results, waiting_share: float) -> Blame:
    """Name the stage and the cause, as far as the numbers show them.

    Args:
        results: Of a job that waits for input.
        waiting_share: Exposed wait over the step, 0 to 1.
    """
    facts = gather(results, waiting_share)
    if facts is None:
        return _blame_turns(results.calibration)
    cause = next(cause for cause, holds in CAUSE_RULES if holds(facts))
    return Blame(
        facts.blamed.name,
        cause,
        _evidence(facts),
        overlap_gain(facts),
        is_clear=facts.blamed.share >= CLEAR_SHARE,
        calls=facts.blamed.calls,
    )


def _blame_turns(calibration: Calibration | Unavailable) -> Blame:
    """Blame the lack of overlap where the step alone and the pipeline alone add up to the step, else nothing."""
    if isinstance(calibration, Unavailable) or calibration.pipeline_only_ns is None:
        return Blame()
    device, pipeline, step = calibration.device_only_ns, calibration.pipeline_only_ns, calibration.step_ns
    tolerance = OVERLAP_TOLERANCE * step
    if min(device, pipeline) < tolerance or abs(device + pipeline - step) > tolerance:
        return Blame()
    return Blame(cause=InputCause.NO_OVERLAP, overlap_gain=1.0 - max(device, pipeline) / step)


def no_overlap(facts: InputFacts) -> bool:
    """Nothing works ahead of the step; that would hide most of the wait, and save no less than more calls at once would."""
    gain = overlap_gain(facts)
    return not facts.works_ahead and gain >= max(HIDDEN_SHARE * facts.waiting_share, parallel_gain(facts))


def python_bound(facts: InputFacts) -> bool:
    """The stage is Python that keeps a core of the training process busy: no two of its threads can run it at once.

    A generator that leaves the core idle waits for something else, such as processes of its own; that is its source.
    """
    if not _is_python(facts):
        return False
    cores = facts.processor
    if cores is None:
        return True
    is_starved = cores.left_share >= CPU_FULL_SHARE and cores.own_share < CPU_OWN_SHARE
    share = PYTHON_STARVED_SHARE if is_starved else PYTHON_BUSY_SHARE
    return cores.process_cores >= share * _python_cores(facts)


def python_fills(facts: InputFacts) -> bool:
    """Python keeps a core busy, and that is most of what the job takes of the processor: full cores are others' work."""
    cores = facts.processor
    return python_bound(facts) and (cores is None or _python_cores(facts) >= CLEAR_SHARE * cores.cores_used)


def python_waits(facts: InputFacts) -> bool:
    """The stage is Python that leaves the processor idle: more of its calls could wait at the same time."""
    return facts.blamed.name != GENERATOR and _is_python(facts) and not python_bound(facts)


def _is_python(facts: InputFacts) -> bool:
    return facts.blamed.name == GENERATOR or facts.blamed.python_share >= PYTHON_SHARE


def _python_cores(facts: InputFacts) -> float:
    """Return the cores that the stage's Python takes at most if it computes: its time on threads, but no more than one."""
    seen = facts.blamed.seen
    return 1.0 if seen is None else min(1.0, facts.blamed.python_ns / seen.observed_ns)


def cpu_bound(facts: InputFacts) -> bool:
    """The cores that others left are full, and it is the job that fills them."""
    cores = facts.processor
    return cores is not None and cores.left_share >= CPU_FULL_SHARE and cores.own_share >= CPU_OWN_SHARE


def ordering(facts: InputFacts) -> bool:
    """Slow calls hold finished elements back: latency varies widely, order is kept, and slots stand idle."""
    stage, allowed = facts.blamed.seen, facts.blamed.parallelism
    if stage is None or allowed is None or allowed < 2:
        return False
    variation, used = stage.function_latency.variation, stage.parallelism_used
    if variation is None or used is None:
        return False
    is_idle = used < IDLE_SLOTS_SHARE * allowed
    return stage.deterministic is not False and variation > UNSTEADY_VARIATION and is_idle


def pool_bound(facts: InputFacts) -> bool:
    """More calls may run at once than the pool has threads, or calls are seen to queue for a pool that is full."""
    allowed, threads, work = facts.blamed.parallelism, facts.pool_threads, facts.blamed.work
    if allowed is None or threads is None or allowed < 2:
        return False
    if work is not None and facts.step_ns:
        return allowed > threads and work.work_ns / threads >= POOL_EXPLAINS_SHARE * facts.step_ns
    seen, busy = facts.blamed.seen, facts.pool_busy_share
    queueing = None if seen is None else seen.queueing_share
    return queueing is not None and queueing > QUEUEING_SHARE and busy is not None and busy >= POOL_FULL_SHARE


def source(facts: InputFacts) -> bool:
    """What the job waits for are the records themselves."""
    return facts.blamed.is_reader


def under_parallel(_: InputFacts) -> bool:
    """The stage does fewer things at once than threads and cores allow: what is left when no other rule holds."""
    return True


CAUSE_RULES: tuple[tuple[InputCause, Callable[[InputFacts], bool]], ...] = (
    (InputCause.NO_OVERLAP, no_overlap),
    (InputCause.PYTHON_BOUND, python_fills),
    (InputCause.CPU_BOUND, cpu_bound),
    (InputCause.PYTHON_BOUND, python_bound),
    (InputCause.PYTHON_WAITS, python_waits),
    (InputCause.ORDERING, ordering),
    (InputCause.POOL_BOUND, pool_bound),
    (InputCause.SOURCE, source),
    (InputCause.UNDER_PARALLEL, under_parallel),
)
"""The first that holds names the cause. Python comes before the processor where it is most of what the job takes of it, and after it
elsewhere; what may overlap is bounded by idle cores already."""


def _evidence(facts: InputFacts) -> tuple[Evidence, ...]:
    blamed, cores = facts.blamed, facts.processor
    of = "the exposed wait" if blamed.work is None else "the time that all stages need"
    found = [Evidence(f"part of {blamed.words}", f"{format_percent(100 * blamed.share)} of {of}"), *_of_script(blamed)]
    if blamed.work is not None:
        found.append(Evidence(f"work of {blamed.words} per batch", format_duration(blamed.work.work_ns)))
    if blamed.parallelism is not None:
        found.append(Evidence("calls allowed at once", f"{blamed.parallelism:.3g}"))
    if facts.pool_threads is not None:
        busy = "" if facts.pool_busy_share is None else f", {format_percent(100 * facts.pool_busy_share)} busy"
        found.append(Evidence("thread pool", f"{format_count(facts.pool_threads)} threads{busy}"))
    if blamed.seen is not None and blamed.seen.queueing_share is not None:
        share = format_percent(100 * blamed.seen.queueing_share)
        found.append(Evidence("queueing for a thread", f"{share} of their time"))
    if blamed.seen is not None and blamed.seen.function_latency.variation is not None:
        found.append(
            Evidence("spread of the calls' time", f"{blamed.seen.function_latency.variation:.1f} times the mean")
        )
    if not facts.works_ahead:
        for change, gain in _gains(facts):
            found.append(Evidence(f"{change} alone would save", f"up to {format_percent(100 * gain)} of the step"))
    if cores is not None:
        found.append(
            Evidence("processor", f"{cores.cores_used:.2g} cores, {format_percent(100 * cores.own_share)} of all")
        )
        if cores.children_cores >= LEAST_CORES:
            found.append(Evidence("processes that the job started", f"{cores.children_cores:.2g} of these cores"))
    return tuple(found)


def _of_script(blamed: Blamed) -> Iterator[Evidence]:
    """Yield the iterator behind a line of a script, and how much of the wait is Python."""
    if blamed.words != blamed.name:
        yield Evidence("runs as", blamed.name)
    if blamed.python_exposed_share and (functions := name_python(blamed.calls)):
        share = format_percent(100 * blamed.python_exposed_share)
        yield Evidence(f"Python in {functions}", f"{share} of the exposed wait")


def _gains(facts: InputFacts) -> list[tuple[str, float]]:
    """Return what two cures of a serial pipeline would save of the step; Python that keeps a core busy gains by one of them."""
    gains = [("overlap", overlap_gain(facts))]
    if not python_bound(facts):
        at_once = f"{times_as_many(facts):.3g} times as many calls of {facts.blamed.words} at once"
        gains.append((at_once, parallel_gain(facts)))
    return gains
