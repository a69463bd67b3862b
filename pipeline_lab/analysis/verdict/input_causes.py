"""Why the stage that an input-bound job waits for is slow: one small rule per cause.

The rules follow from tf.data's own model: a parallel stage takes its work divided by the calls that really run at once;
those are limited by what it is allowed, by the threads of its pool and by the cores. Thresholds are those that real jobs
with a planted cause were set on (``benchmarks/verdict``, set ``tune``), within the bounds that the comments name.
"""

from collections.abc import Callable, Iterator

from pipeline_lab.analysis.causes import InputCause
from pipeline_lab.analysis.results import Results
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.tf_data.tf_data import StageOrigin
from pipeline_lab.analysis.tf_data.written_words import name_python
from pipeline_lab.analysis.verdict.input_facts import (
    LEAST_CORES,
    MOSTLY_STARTING,
    PER_FILE,
    Blamed,
    InputFacts,
    LoopSetup,
    Processor,
    beside_step,
    find_setup,
    gather,
    overlap_gain,
    parallel_gain,
    times_as_many,
)
from pipeline_lab.analysis.verdict.verdict import Blame, Evidence
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import format_count, format_duration, format_percent

CLEAR_SHARE = 0.5
"""A stage that fills less of the wait than this is one of several."""

OVERLAP_TOLERANCE = 0.15
"""Compute-only step plus input-only time within this share of the step, and both at least as large: they do not overlap."""

HIDDEN_SHARE = 0.5
"""Part of the wait that overlap has to hide to be what is missing: with less, the input is too slow all the same."""

PYTHON_SHARE = 0.5
"""Part of the stage's work that Python has to be."""

PYTHON_BUSY_SHARE = 0.8
"""Python that keeps a core busy for less than this of its time sleeps or waits: more calls at once would help it."""

PYTHON_STARVED_SHARE = 0.4
"""The same where other programs fill the cores: a thread that computes then waits for its turn about as long as it runs."""

MORE_THAN_A_CORE = 1.2
"""Busy cores above which the GIL does not limit the Python: what it calls releases the lock. A judgment; sampling may add a little to one core."""

CPU_FULL_SHARE = 0.85
"""Of the cores that others left; beyond that more threads bring nothing."""

CPU_BUSY_SHARE = 0.6
"""The same of a stage that has as many calls under way as there are cores: what they leave idle is the work of serial stages. A judgment."""

CPU_OWN_SHARE = 0.4
"""Of all cores that the job may use; with less of them, others fill the machine and nothing can be said of the job."""

UNSTEADY_VARIATION = 1.0
"""Standard deviation over mean of the function's latency; an exponential distribution has 1."""

IDLE_SLOTS_SHARE = 0.7
"""A stage that is held up by its order has fewer calls under way than this part of what it is allowed."""

TINY_CALL_NS, MANY_CALLS = 50_000.0, 16
"""Time on a thread below which a call of a function costs as much as what it does (tf.data takes 15 to 40 µs to make one), and calls
for a batch from which on that adds up."""

QUEUEING_SHARE = 0.3
POOL_FULL_SHARE = 0.8
"""How long calls queue, and how busy the pool's threads are, where the pool is the limit."""

POOL_EXPLAINS_SHARE = 0.5
"""Part of the step that the stage's work on all threads of the pool has to fill."""

GENERATOR = "Generator"
LOOP_ITERATOR = "Scan"
"""The iterator by which TensorFlow goes through a loop inside a function."""
READERS = frozenset({"TFRecord", "TextLine", "FixedLengthRecord", "CSV"})
"""Iterators of files, of which no other line can ask for whole batches."""


def find_blame(results: Results, waiting_share: float) -> Blame:
    """Name the stage and the cause, as far as the numbers show them.

    Args:
        results: Of a job that waits for input.
        waiting_share: Exposed wait over the step, 0 to 1.
    """
    own_call = None if isinstance(results.job_steps, Unavailable) else results.job_steps.own_call
    if own_call is not None:
        return Blame(own_call, InputCause.OWN_BATCHES, overlap_gain=beside_step(results, waiting_share))
    setup = find_setup(results, waiting_share)
    if setup is not None:
        return Blame(LOOP_ITERATOR, InputCause.LOOP_START, _of_setup(setup))
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
        filled_by=facts.blamed.filled_by,
    )


def find_heaviest(results: Results) -> Blame:
    """Name the stage that works most for a batch, of a pipeline that nobody waits for."""
    facts = gather(results, 0.0)
    if facts is None:
        return Blame()
    share = f"{format_percent(100 * facts.blamed.share)} of the time that all stages need"
    return Blame(
        facts.blamed.name, evidence=(Evidence(f"part of {facts.blamed.words}", share),), calls=facts.blamed.calls
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


def _of_setup(setup: LoopSetup) -> tuple[Evidence, ...]:
    return (
        Evidence("wait at the beginning of a pass", format_duration(setup.begin_ns)),
        Evidence("longest request for a batch in the windows", format_duration(setup.request_ns)),
    )


def epoch_start(facts: InputFacts) -> bool:
    """Most of the wait is at the beginnings of epochs, where a buffer fills again."""
    return facts.starting_share >= MOSTLY_STARTING


def no_overlap(facts: InputFacts) -> bool:
    """Nothing works ahead of the step; that would hide most of the wait, and save no less than more calls at once would."""
    gain = overlap_gain(facts)
    return not facts.works_ahead and gain >= max(HIDDEN_SHARE * facts.waiting_share, parallel_gain(facts))


def python_bound(facts: InputFacts) -> bool:
    """The stage is Python that keeps a core of the training process busy: no two of its threads can run it at once.

    A generator that leaves the core idle waits for something else, such as processes of its own; that is its source.
    """
    if not _is_python(facts) or _runs_on_several_cores(facts):
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
    if facts.blamed.name == GENERATOR or _runs_on_several_cores(facts):
        return False
    return _is_python(facts) and not python_bound(facts)


def _is_python(facts: InputFacts) -> bool:
    if facts.blamed.name == GENERATOR or facts.blamed.python_share >= PYTHON_SHARE:
        return True
    is_unseen = facts.blamed.seen is None or not facts.blamed.seen.operations
    return is_unseen and "Map" in facts.blamed.name and any(call.python for call in facts.blamed.calls)


def _python_cores(facts: InputFacts) -> float:
    """Return the cores that the stage's Python takes at most if it computes: its time on threads, but no more than one."""
    seen = facts.blamed.seen
    return 1.0 if seen is None else min(1.0, facts.blamed.python_ns / seen.observed_ns)


def _runs_on_several_cores(facts: InputFacts) -> bool:
    """Say whether the stage's Python keeps more than one core busy, so that the GIL does not limit it.

    Counted at least: what the process uses, less all cores while the step does not wait and less a core per busy thread of other stages.
    """
    seen, cores = facts.blamed.seen, facts.processor
    if seen is None or cores is None or not facts.blamed.share:
        return False
    python_cores = facts.blamed.python_ns / seen.observed_ns
    others = python_cores * (1.0 / facts.blamed.share - 1.0) + cores.cores * (1.0 - facts.waiting_share)
    return min(python_cores, cores.process_cores - others) > MORE_THAN_A_CORE


def cpu_bound(facts: InputFacts) -> bool:
    """The cores that others left are full, and it is the job that fills them."""
    cores = facts.processor
    return cores is not None and cores.left_share >= CPU_FULL_SHARE and cores.own_share >= CPU_OWN_SHARE


def call_overhead(facts: InputFacts) -> bool:
    """The stage is called very often for a batch, and does next to nothing each time."""
    seen, calls, work = facts.blamed.seen, facts.blamed.calls_per_batch, facts.blamed.work
    if _is_python(facts) or facts.blamed.name in (*READERS, *PER_FILE):  # records come one by one
        return False
    if seen is not None and calls is not None:
        return calls >= MANY_CALLS and seen.function_on_thread_ns < TINY_CALL_NS * seen.function_calls
    return (
        work is not None
        and not facts.blamed.is_reader
        and work.visits_per_batch >= MANY_CALLS
        and work.self_ns < TINY_CALL_NS
    )


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


def on_all_cores(facts: InputFacts) -> bool:
    """The stage has as many calls under way as there are cores, which are busy most of the time: more calls would find none free."""
    cores, at_once = facts.processor, facts.blamed.parallelism
    if cores is None or at_once is None or at_once < max(2.0, cores.cores):
        return False
    return cores.left_share >= CPU_BUSY_SHARE and cores.own_share >= CPU_OWN_SHARE


def under_parallel(_: InputFacts) -> bool:
    """The stage does fewer things at once than threads and cores allow: what is left when no other rule holds."""
    return True


CAUSE_RULES: tuple[tuple[InputCause, Callable[[InputFacts], bool]], ...] = (
    (InputCause.EPOCH_START, epoch_start),
    (InputCause.NO_OVERLAP, no_overlap),
    (InputCause.PYTHON_BOUND, python_fills),
    (InputCause.CALL_OVERHEAD, call_overhead),
    (InputCause.CPU_BOUND, cpu_bound),
    (InputCause.PYTHON_BOUND, python_bound),
    (InputCause.ORDERING, ordering),
    (InputCause.POOL_BOUND, pool_bound),
    (InputCause.PYTHON_WAITS, python_waits),
    (InputCause.SOURCE, source),
    (InputCause.CPU_BOUND, on_all_cores),
    (InputCause.UNDER_PARALLEL, under_parallel),
)
"""The first that holds names the cause of a pipeline's slowness; a script that makes its batches itself has no pipeline, and `loop-start` is not about the pipeline either. Python comes
before the processor where it is most of what the job takes of it, and after it elsewhere; what may overlap is bounded by idle cores already. Python that waits is held up by order and threads like anything else."""


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
    found += _of_processor(cores)
    return tuple(found)


def _of_processor(cores: Processor | None) -> Iterator[Evidence]:
    """Yield what the job, its processes and other programs take of the processor."""
    if cores is None:
        return
    yield Evidence("processor", f"{cores.cores_used:.2g} cores, {format_percent(100 * cores.own_share)} of all")
    if cores.other_cores >= LEAST_CORES:
        yield Evidence("other programs", f"{cores.other_cores:.2g} of {cores.cores:g} cores")
    if cores.children_cores >= LEAST_CORES:
        yield Evidence("processes that the job started", f"{cores.children_cores:.2g} of these cores")


def _of_script(blamed: Blamed) -> Iterator[Evidence]:
    """Yield the iterator behind a line of a script, and how much of the wait is Python."""
    if blamed.words != blamed.name:
        origin = StageOrigin.WRITTEN if blamed.seen is None else blamed.seen.origin
        yield Evidence("runs as", blamed.name + (f" ({origin.words})" if origin is not StageOrigin.WRITTEN else ""))
    if blamed.python_exposed_share and (functions := name_python(blamed.calls)):
        share = format_percent(100 * blamed.python_exposed_share)
        yield Evidence(f"Python in {functions}", f"{share} of the exposed wait")


def _gains(facts: InputFacts) -> list[tuple[str, float]]:
    """Return what two remedies for a serial pipeline would save of the step; Python that keeps a core busy gains by one of them."""
    gains = [("overlap", overlap_gain(facts))]
    if not python_bound(facts):
        at_once = f"{times_as_many(facts):.3g} times as many calls of {facts.blamed.words} at once"
        gains.append((at_once, parallel_gain(facts)))
    return gains
