"""Why the stage that an input-bound job waits for is slow: one small rule per cause, tried in order.

The rules follow from tf.data's own model: a parallel stage takes its work divided by the calls that really run at once;
those are limited by what it is allowed, by the threads of its pool and by the cores. Thresholds are those that real jobs
with a planted cause were set on (``benchmarks/verdict``, set ``tune``), within the bounds that the comments name.
"""

from collections.abc import Callable

from pipeline_lab.analysis.blame import Blame, InputCause
from pipeline_lab.analysis.calibration import Calibration
from pipeline_lab.analysis.input_facts import InputFacts, gather, works_ahead
from pipeline_lab.analysis.results import Results
from pipeline_lab.analysis.verdict import Evidence
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import format_count, format_percent

CLEAR_SHARE = 0.5
"""A stage that fills less of the wait than this is one of several."""

OVERLAP_TOLERANCE = 0.15
"""G + D within this share of the step, and both at least as large, means that they do not overlap."""

PYTHON_SHARE = 0.5
"""Part of the stage's work that Python has to be."""

PYTHON_BUSY_SHARE = 0.5
"""Python that keeps a core busy for less than this of its time sleeps or waits: more calls at once would help it."""

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


def find_blame(results: Results, waiting_share: float) -> Blame:
    """Name the stage and the cause, as far as the numbers show them.

    Args:
        results: Of a job that waits for input.
        waiting_share: Exposed wait over the step, 0 to 1.
    """
    facts = gather(results, waiting_share)
    if facts is None:
        return Blame(cause=InputCause.NO_OVERLAP) if _takes_turns(results.calibration) else Blame()
    cause = next((cause for cause, holds in RULES if holds(facts, results)), None)
    return Blame(facts.stage.name, cause, _evidence(facts), facts.exposed_share >= CLEAR_SHARE)


def no_overlap(facts: InputFacts, results: Results) -> bool:
    """Nothing works ahead of the step, and doing so would hide a good part of it."""
    if works_ahead(facts.pipeline):
        return False
    if isinstance(results.calibration, Unavailable) or results.calibration.pipeline_only_ns is None:
        return min(facts.waiting_share, 1.0 - facts.waiting_share) >= OVERLAP_TOLERANCE
    return _takes_turns(results.calibration)


def python_bound(facts: InputFacts, _: Results) -> bool:
    """The stage is Python that keeps a core busy: no two threads can run it at once."""
    if facts.python_share < PYTHON_SHARE and facts.stage.name != "Generator":
        return False
    if facts.cores_used is None or not facts.python_cores:
        return True
    return facts.cores_used >= PYTHON_BUSY_SHARE * min(1.0, facts.python_cores)


def cpu_bound(facts: InputFacts, _: Results) -> bool:
    """The cores that others left are full, and it is the job that fills them."""
    if facts.cpu_share is None or facts.own_share is None:
        return False
    return facts.cpu_share >= CPU_FULL_SHARE and facts.own_share >= CPU_OWN_SHARE


def ordering(facts: InputFacts, _: Results) -> bool:
    """Slow calls hold finished elements back: latency varies widely, order is kept, and slots stand idle."""
    stage = facts.stage
    variation, used = stage.function_latency.variation, stage.parallelism_used
    if variation is None or used is None or stage.parallelism is None or stage.parallelism < 2:
        return False
    is_idle = used < IDLE_SLOTS_SHARE * stage.parallelism
    return stage.deterministic is not False and variation > UNSTEADY_VARIATION and is_idle


def pool_bound(facts: InputFacts, _: Results) -> bool:
    """Calls queue for a thread although they may run at once: the pool is full and the cores are not."""
    queueing, busy = facts.stage.queueing_share, facts.pipeline.pool_busy_share
    return queueing is not None and queueing > QUEUEING_SHARE and busy is not None and busy >= POOL_FULL_SHARE


def source(facts: InputFacts, _: Results) -> bool:
    """What the job waits for are the records themselves."""
    return facts.is_reader


def under_parallel(facts: InputFacts, _: Results) -> bool:
    """The stage does fewer things at once than threads and cores allow; what is left when no other rule holds."""
    return facts.stage.work_ns > 0


RULES: tuple[tuple[InputCause, Callable[[InputFacts, Results], bool]], ...] = (
    (InputCause.NO_OVERLAP, no_overlap),
    (InputCause.PYTHON_BOUND, python_bound),
    (InputCause.CPU_BOUND, cpu_bound),
    (InputCause.ORDERING, ordering),
    (InputCause.POOL_BOUND, pool_bound),
    (InputCause.SOURCE, source),
    (InputCause.UNDER_PARALLEL, under_parallel),
)
"""The first that holds names the cause."""


def _takes_turns(calibration: Calibration | Unavailable) -> bool:
    """Say whether the step alone and the pipeline alone add up to the step."""
    if isinstance(calibration, Unavailable) or calibration.pipeline_only_ns is None:
        return False
    device, pipeline, step = calibration.device_only_ns, calibration.pipeline_only_ns, calibration.step_ns
    if min(device, pipeline) < OVERLAP_TOLERANCE * step:
        return False
    return abs(device + pipeline - step) <= OVERLAP_TOLERANCE * step


def _evidence(facts: InputFacts) -> tuple[Evidence, ...]:
    stage, pipeline = facts.stage, facts.pipeline
    found = [Evidence(f"exposed wait behind {stage.name}", f"{format_percent(100 * facts.exposed_share)} of it")]
    if stage.parallelism_used is not None:
        allowed = "" if stage.parallelism is None else f", {format_count(stage.parallelism)} allowed"
        found.append(Evidence("calls under way at once", f"{stage.parallelism_used:.1f}{allowed}"))
    if stage.queueing_share is not None:
        found.append(
            Evidence("calls in a queue for a thread", f"{format_percent(100 * stage.queueing_share)} of their time")
        )
    if stage.function_latency.variation is not None:
        found.append(Evidence("spread of the calls' time", f"{stage.function_latency.variation:.1f} times its mean"))
    if facts.python_share:
        found.append(Evidence("Python in the stage", f"{format_percent(100 * facts.python_share)} of its work"))
    if pipeline.pool_busy_share is not None and pipeline.threadpool_size is not None:
        busy = format_percent(100 * pipeline.pool_busy_share)
        found.append(Evidence("thread pool", f"{format_count(pipeline.threadpool_size)} threads, {busy} busy"))
    if facts.cpu_share is not None:
        found.append(Evidence("processor", f"{format_percent(100 * facts.cpu_share)} of what others left"))
    return tuple(found)
