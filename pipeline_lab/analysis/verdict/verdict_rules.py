"""From results to the verdict: what holds the job back, how sure that is, the sentence and its evidence.

The rules look at measured times only, never at options or preset names.
"""

import numpy as np

from pipeline_lab.analysis.causes import (
    BREAKS_SENTENCE,
    PACE_SENTENCE,
    PREDICTS_SENTENCE,
    SHARED_CORES_SENTENCE,
    SLOWED_SENTENCE,
    GapCause,
    InputCause,
    VerdictClass,
)
from pipeline_lab.analysis.idle.idle_gaps import IdleGaps
from pipeline_lab.analysis.results import Results
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.steps.job_steps import MODERATE_PERCENT, JobSteps, Predicts
from pipeline_lab.analysis.steps.step_phases import LATER, Phase, PhaseTimes
from pipeline_lab.analysis.tf_data.written_words import name_python, name_stage
from pipeline_lab.analysis.verdict.findings import MOST_PERCENT, checkpoint_percent, evaluation_percent, is_machine_busy
from pipeline_lab.analysis.verdict.input_causes import CPU_FULL_SHARE, find_blame, find_heaviest
from pipeline_lab.analysis.verdict.judged_parts import deciding_breakdown
from pipeline_lab.analysis.verdict.losses import (
    CONTENTION_PERCENT,
    STRONG_PERCENT,
    Losses,
    choose_class,
    measure_losses,
)
from pipeline_lab.analysis.verdict.recording_effects import has_device_work
from pipeline_lab.analysis.verdict.verdict import Blame, Confidence, Evidence, JudgedStep, Verdict
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.record import EMULATED_NOTE
from pipeline_lab.units import format_count, format_duration, format_percent

SCATTERED_PERCENT = 40.0
"""Share of the step below which idle time without a cause of 20 % is no verdict: a small step always leaves some to callbacks and ends of epochs."""
NAMED_REST_PERCENT = 2.0
"""Share of the step from which the rest is named beside the cause that takes most of it."""


def write_sentence(
    kind: VerdictClass,
    cause: str | None,
    blame: Blame,
    losses: Losses,
    share_percent: float | None = None,
    *,
    instead: str = "",
    predicts: Predicts | None = None,
    framework: str = "TensorFlow",
    function: str | None = None,
) -> str:
    """Say in one sentence what holds the job back, and how much of a step that takes.

    Args:
        kind: The verdict's class.
        cause: Its cause, if known.
        blame: The stage that the job waits for.
        losses: How the step divides.
        share_percent: What the cause takes of the step; None for all of the class.
        instead: What stands for the cause's own sentence.
        predicts: Calls of ``predict`` between the steps.
        framework: What the job is written in.
        function: In which most of the idle time in Python passes, and its place, if known.
    """
    stage = None if blame.stage is None else name_stage(blame.calls, blame.stage)
    functions = name_python(blame.calls)
    of_class = losses.by_class.get(kind, 0.0)
    share_percent = of_class if share_percent is None else share_percent
    lost, rest = (percent / 100.0 * losses.step_ns for percent in (share_percent, of_class - share_percent))
    waits = losses.by_class.get(VerdictClass.INPUT_BOUND, 0.0)
    template, why, beside = kind.sentence, "", "without waiting"
    if waits >= MODERATE_PERCENT:
        beside = f"besides {format_duration(waits / 100.0 * losses.step_ns)} of waiting for input"
    if kind is VerdictClass.INPUT_BOUND:
        clause = InputCause(cause).clause if cause else ", mostly for {stage}" if stage else ""
        template = _input_sentence(losses)
        why = clause.format(stage=stage, python=functions and f" in {functions}", source=_source(blame))
    elif kind is VerdictClass.HOST_CONTENTION:
        template = SHARED_CORES_SENTENCE if losses.is_estimated else template
        runs = f", which runs Python in {functions}" if functions else ""
        why = f", most of all {stage}{runs}" if stage else ""
    elif kind is VerdictClass.IDLE_OTHER and cause:
        template = instead or GapCause(cause).sentence
        if of_class - share_percent >= NAMED_REST_PERCENT:
            template = f"{template.removesuffix('.')}; other causes add {format_duration(rest)}."
    return template.format(
        device=losses.worker,
        framework=framework,
        where="" if function is None else f", mostly {function},",
        calls="" if predicts is None else predicts.calls,
        lost=format_duration(lost),
        step=format_duration(losses.step_ns),
        share=format_percent(share_percent if kind in losses.by_class else losses.busy_percent),
        why=why,
        beside=beside,
        waited=format_duration((losses.waiting_percent or 0.0) / 100.0 * losses.step_ns),
        pipeline="" if losses.pace is None else format_duration(losses.pace.pipeline_ns),
        alone="" if losses.pace is None else format_duration(losses.pace.step_ns),
    )


def _input_sentence(losses: Losses) -> str:
    """Return the sentence about input that the picture of a step bears out."""
    if losses.pace is not None:
        return PACE_SENTENCE
    lost, waiting = losses.by_class[VerdictClass.INPUT_BOUND], losses.waiting_percent
    is_slowed = waiting is not None and lost - waiting >= NAMED_REST_PERCENT
    return SLOWED_SENTENCE if is_slowed else VerdictClass.INPUT_BOUND.sentence


def _source(blame: Blame) -> str:
    """Name what fills the blamed stage's buffer."""
    return f" with what {name_stage(blame.filled_by, '')} makes" if name_stage(blame.filled_by, "") else ""


def name_first_epoch(sentence: str, first: PhaseTimes | None) -> str:
    """Add to a sentence about the later epochs what the first one is like."""
    if first is None:
        return sentence
    waits = (
        "" if first.wait_percent is None else f" and waits for input {format_percent(first.wait_percent)} of the time"
    )
    judged = (
        "the later epochs; in the first"
        if first.phase is Phase.FIRST_EPOCH
        else "the job after its steps changed permanently, as when a cache is complete; before"
    )
    return f"{sentence} This describes {judged}, a step takes {format_duration(first.mean_ns)}{waits}."


def name_evaluations(sentence: str, results: Results) -> str:
    """Add to a sentence about the steps what evaluations take besides, where that is much; before it, where that is most of the time."""
    percent, found = evaluation_percent(results), results.evaluation
    if percent is None or isinstance(found, Unavailable):
        return sentence
    place = f", most of it in {found.longest_call}" if found.longest_call else ""
    said = f"Evaluations take {format_percent(percent)} of the whole time{place}."
    return f"{said} {sentence}" if percent > MOST_PERCENT else f"{sentence} {said}"


def name_checkpoints(sentence: str, results: Results) -> str:
    """Add to a sentence what checkpoints take that the job wrote, where that is much: a trace shows the Python that writes them."""
    percent = checkpoint_percent(results)
    return (
        sentence
        if percent is None
        else f"{sentence} Writing checkpoints takes {format_percent(percent)} of the training."
    )


def name_emulated(sentence: str, results: Results) -> str:
    """Add to a sentence that the accelerator is emulated, if it is."""
    return f"{sentence} {EMULATED_NOTE}" if results.source.is_emulated else sentence


def name_last_host(sentence: str, results: Results) -> str:
    """Add to a sentence which host makes the others wait, if one does."""
    last = find_last_host(results)
    return (
        sentence
        if last is None
        else f"{sentence.removesuffix('.')}; {last} is the straggler, and the other hosts wait for it."
    )


def find_last_host(results: Results) -> str | None:
    """Return the host for which the others wait in collectives; hosts without any do not wait for each other."""
    breakdown, hosts = results.step_breakdown, results.hosts
    if isinstance(breakdown, Unavailable) or isinstance(hosts, Unavailable) or not breakdown.collective_ns:
        return None
    return hosts.straggler


def collective_evidence(results: Results) -> tuple[Evidence, ...]:
    """Return how much of all hosts' steps passes in collectives, and who makes the others wait."""
    breakdown, hosts = results.step_breakdown, results.hosts
    if isinstance(breakdown, Unavailable) or not breakdown.collective_ns:
        return ()
    share = format_percent(100.0 * breakdown.collective_ns / breakdown.total_ns)
    found = Evidence(
        "collectives", f"{share} of the steps" if isinstance(hosts, Unavailable) else f"{share} of all hosts' steps"
    )
    if isinstance(hosts, Unavailable) or hosts.straggler is None:
        return (found,)
    rows = {row["host"]: row for row in hosts.table.to_pylist()}
    last = rows.pop(hosts.straggler)
    others_ns = float(np.median([row["input_wait_ns"] for row in rows.values()]))
    return (
        found,
        Evidence("comes last", f"{hosts.straggler}, in {last['last_in']} of {hosts.common_steps} steps of all hosts"),
        Evidence(
            f"input wait of {hosts.straggler}",
            f"{format_duration(last['input_wait_ns'])} per step, of the other hosts {format_duration(others_ns)}",
        ),
    )


def first_epoch_evidence(first: PhaseTimes | None, later: JobSteps | Unavailable) -> tuple[Evidence, ...]:
    """Return the steps that were judged, and those of the first epoch that were not."""
    if first is None or isinstance(later, Unavailable):
        return ()
    return tuple(
        Evidence(
            name,
            f"{format_count(count)} steps, median {format_duration(median)}"
            + ("" if percent is None else f", waiting {format_percent(percent)}"),
        )
        for name, count, median, percent in (
            (first.phase.value, first.steps, first.median_ns, first.wait_percent),
            (f"{LATER[first.phase].value}, which are judged", later.count, later.median_ns, later.wait_percent),
        )
    )


def gather_evidence(kind: VerdictClass, losses: Losses, results: Results) -> tuple[Evidence, ...]:
    found = [Evidence("mean step", format_duration(losses.step_ns))]
    if not isinstance(results.steps, Unavailable):
        steps = results.steps
        found.append(Evidence("recorded steps", f"{format_count(steps.count)} ({steps.marker}{steps.rule.note})"))
    if not isinstance(results.input_stalls, Unavailable):
        stalls = results.input_stalls
        found.append(Evidence("input wait", f"{format_percent(stalls.wait_percent)} of the steps"))
        found.append(Evidence("exposed stall", f"{format_percent(stalls.exposed_percent)} of the steps"))
    if kind in losses.by_class and kind is not VerdictClass.INPUT_BOUND:
        found.append(Evidence(kind.loss, f"{format_percent(losses.by_class[kind])} of the steps"))
    found.append(Evidence(losses.worker.evidence, f"{format_percent(losses.busy_percent)} of the steps"))
    job = results.job_steps
    if not isinstance(job, Unavailable) and job.wait_percent is not None:
        waiting = format_percent(job.wait_percent)
        found.append(Evidence("input wait, all measured steps", f"{waiting} of {format_count(job.count)} steps"))
    return (*found, *_calibration_evidence(results.calibration))


def _calibration_evidence(calibration: Calibration | Unavailable) -> tuple[Evidence, ...]:
    if isinstance(calibration, Unavailable):
        return ()
    alone = calibration.pipeline_only_ns
    return (
        Evidence("compute-only step", format_duration(calibration.device_only_ns)),
        *(() if alone is None else (Evidence("input-only time per batch", format_duration(alone)),)),
        Evidence("utilization", format_percent(calibration.utilisation_percent)),
    )


def idle_evidence(gaps: IdleGaps) -> tuple[Evidence, ...]:
    idle = gaps.idle_percent
    if isinstance(idle, Unavailable):
        return ()
    return (Evidence(f"idle time of {gaps.device}", f"{format_percent(idle)} of the capture"),)


FEW_STEPS, VERY_FEW_STEPS = 10, 3


def reach_verdict(results: Results, first_epoch: PhaseTimes | None = None) -> Verdict:
    """Say what holds the job back.

    Args:
        results: Of the job, or of its later epochs.
        first_epoch: Named apart where the results are those of the later ones alone.
    """
    if contradiction := find_contradiction(results):
        return _unknown(results, contradiction)
    losses = measure_losses(results)
    if losses is None:
        return _unknown(results, _why_no_steps(results))
    kind = choose_class(losses)
    if kind is VerdictClass.IDLE_OTHER and _is_scattered(results, losses):
        kind = choose_class(losses, but_for=kind)
    share_percent = losses.by_class.get(kind, 0.0)
    blame = _blame(kind, share_percent, results)
    cause = blame.cause.value if blame.cause is not None else _idle_cause(kind, results, losses)
    confidence, doubts = _confidence(kind, losses, results, blame, of_later=first_epoch is not None)
    lost_percent = losses.by_class.get(kind)
    instead = ""
    if kind is VerdictClass.IDLE_OTHER and cause:
        lost_percent = _cause_percent(GapCause(cause), losses, results)
        if cause == GapCause.PYTHON and losses.breaking_percent > lost_percent / 2:
            lost_percent, instead = losses.breaking_percent, BREAKS_SENTENCE
        elif cause == GapCause.PYTHON and losses.predicting_percent > lost_percent / 2:
            lost_percent, instead = losses.predicting_percent, PREDICTS_SENTENCE
    framework = "JAX" if results.source.is_of_jax else "TensorFlow"
    function = _find_function(results)
    sentence = write_sentence(
        kind,
        cause,
        blame,
        losses,
        lost_percent,
        instead=instead,
        predicts=None if isinstance(results.job_steps, Unavailable) else results.job_steps.predicts,
        framework=framework,
        function=function,
    )
    named = sentence if cause == GapCause.CHECKPOINT.value else name_checkpoints(sentence, results)
    return Verdict(
        verdict_class=kind,
        sentence=name_emulated(
            name_evaluations(name_first_epoch(name_last_host(named, results), first_epoch), results), results
        ),
        evidence=(
            *gather_evidence(kind, losses, results),
            *collective_evidence(results),
            *first_epoch_evidence(first_epoch, results.job_steps),
            *blame.evidence,
        ),
        confidence=confidence,
        stage=blame.stage,
        cause=cause,
        step=_judged_step(kind, losses, results),
        lost_percent=lost_percent,
        overlap_percent=None if blame.overlap_gain is None else 100.0 * blame.overlap_gain,
        break_percent=losses.breaking_percent,
        predicting_percent=losses.predicting_percent,
        calls=(*blame.calls, *blame.filled_by),
        doubts=doubts,
    )


def _judged_step(kind: VerdictClass, losses: Losses, results: Results) -> JudgedStep:
    measured = results.steps if losses.are_recorded else results.job_steps
    taken = kind if kind is VerdictClass.HOST_CONTENTION else VerdictClass.INPUT_BOUND
    lost, stalls = losses.by_class.get(taken, 0.0), results.input_stalls
    is_unknown = not lost and _knows_no_wait(results)
    return JudgedStep(
        losses.step_ns,
        stalls if is_unknown and isinstance(stalls, Unavailable) else lost,
        losses.busy_percent,
        0 if isinstance(measured, Unavailable) else measured.count,
        losses.are_recorded,
    )


def _knows_no_wait(results: Results) -> bool:
    """Say whether the job itself timed no wait for input either."""
    return isinstance(results.job_steps, Unavailable) or results.job_steps.wait_percent is None


def _blame(kind: VerdictClass, share_percent: float, results: Results) -> Blame:
    """Name the stage that the job waits for, or that takes most of the processor from its step."""
    if kind is VerdictClass.INPUT_BOUND:
        return find_blame(results, share_percent / 100.0)
    return find_heaviest(results) if kind is VerdictClass.HOST_CONTENTION else Blame()


def _idle_cause(kind: VerdictClass, results: Results, losses: Losses) -> str | None:
    """Name what filled the steps' idle time when nothing kept the device from working."""
    breakdown = deciding_breakdown(results)
    if kind is not VerdictClass.IDLE_OTHER:
        return None
    if isinstance(breakdown, Unavailable):
        return (
            max(losses.unseen_percent, key=losses.unseen_percent.__getitem__).value if losses.unseen_percent else None
        )
    if not losses.unseen_percent:
        return breakdown.idle_otherwise_cause.value
    return max(breakdown.idle_by_cause_ns, key=lambda cause: _cause_percent(cause, losses, results)).value


def _is_scattered(results: Results, losses: Losses) -> bool:
    """Say whether idle time has causes that are too small each to be called what holds the job back, and is not much together."""
    cause = _idle_cause(VerdictClass.IDLE_OTHER, results, losses)
    percent = 0.0 if cause is None else _cause_percent(GapCause(cause), losses, results)
    return percent < STRONG_PERCENT and losses.by_class[VerdictClass.IDLE_OTHER] < SCATTERED_PERCENT


def _find_function(results: Results) -> str | None:
    """Name the function in which most of the idle time in Python passes, by the trace or else by where the job was seen; None where none is known."""
    found, job = results.idle_python, results.job_steps
    if isinstance(found, Unavailable) or not found.functions:
        return None if isinstance(job, Unavailable) else job.own_python
    first, *_ = found.functions
    return first.place if first.idle_ns > found.total_ns / 2 else None


def _cause_percent(cause: GapCause, losses: Losses, results: Results) -> float:
    """Return the share of the step that one cause of its idle time takes, as the picture of the step shows it."""
    breakdown, total = deciding_breakdown(results), losses.by_class[VerdictClass.IDLE_OTHER]
    unseen = losses.unseen_percent
    if isinstance(breakdown, Unavailable) or not breakdown.idle_otherwise_ns:
        return unseen.get(cause, 0.0) if sum(unseen.values()) else total
    all_ns = breakdown.idle_otherwise_ns + (breakdown.host_compute_ns if has_device_work(breakdown) else 0)
    return (total - sum(unseen.values())) * breakdown.idle_by_cause_ns[cause] / all_ns + unseen.get(cause, 0.0)


def find_contradiction(results: Results) -> str:
    """Say which times of the trace cannot be true together, as those of a damaged one; empty if they can."""
    gaps, breakdown = results.idle_gaps, results.step_breakdown
    if not isinstance(gaps, Unavailable):
        if any(device.busy_ns < 0 or device.idle_ns < 0 for device in gaps.devices):
            return _CONTRADICTION.format(what=f"{gaps.device} is busy or idle for less than no time")
        if sum(gaps.idle_by_cause_ns.values()) != gaps.idle_ns:
            return _CONTRADICTION.format(what="the causes of idle time do not add up to it")
    if not isinstance(breakdown, Unavailable) and not breakdown.adds_up:
        return _CONTRADICTION.format(what="the parts of a step do not add up to it")
    return ""


_CONTRADICTION = "The trace contradicts itself: {what}. It is damaged; record another one."


def _why_no_steps(results: Results) -> str:
    damage = results.source.salvaged
    if isinstance(results.steps, Unavailable) and damage is not None:
        return f"What could be read of the damaged file holds no step. {damage.reason}"
    if isinstance(results.steps, Unavailable):
        return results.steps.reason
    if results.source.unseen_device:
        return "The job did not wait for input, and nothing was recorded of what its device did."
    return "The steps have no length."


def _unknown(results: Results, why: str) -> Verdict:
    evidence = () if isinstance(results.idle_gaps, Unavailable) else idle_evidence(results.idle_gaps)
    return Verdict(VerdictClass.UNKNOWN, VerdictClass.UNKNOWN.sentence.format(why=why), evidence, Confidence.LOW)


def _is_slower_alone(results: Results) -> bool:
    """Say whether the pipeline alone takes longer than the step alone: its pace may hold the job back as well."""
    calibration = results.calibration
    if isinstance(calibration, Unavailable) or calibration.pipeline_only_ns is None:
        return False
    return calibration.pipeline_only_ns > calibration.device_only_ns


def _nearly_contends(losses: Losses) -> bool:
    """Say whether competition for the processor is half of what would give the run its name: it is small, and real."""
    return losses.by_class.get(VerdictClass.HOST_CONTENTION, 0.0) >= CONTENTION_PERCENT / 2


def _may_contend(results: Results) -> bool:
    """Say whether the pipeline works enough beside a step that needs all cores to slow it down unseen.

    The step alone, with which competition is told, is timed for a fifth of a second, and comes out a fifth apart from run to
    run on a processor (`benchmarks/verdict`); so much may stay hidden.
    """
    calibration, load = results.calibration, results.job_load
    if isinstance(calibration, Unavailable) or isinstance(load, Unavailable) or not calibration.pipeline_only_cpu_ns:
        return False
    pipeline_percent = 100.0 * calibration.pipeline_only_cpu_ns / (calibration.step_ns * load.cores)
    return load.cores_used >= CPU_FULL_SHARE * load.cores and pipeline_percent >= CONTENTION_PERCENT


def _confidence(
    kind: VerdictClass, losses: Losses, results: Results, blame: Blame, *, of_later: bool
) -> tuple[Confidence, tuple[str, ...]]:
    """Start high, and lower it for every weakness; the serious ones make it low at once. Return the weaknesses, too."""
    steps, job = results.steps, results.job_steps
    if isinstance(steps, Unavailable):
        count, is_only_first = 0 if isinstance(job, Unavailable) else job.count, False
    else:
        count, is_only_first = steps.count, steps.first_step_only
    share = losses.by_class.get(kind)
    few = f"only {format_count(count)} step{'s' * (count != 1)}"
    doubts = {
        "only the first step": is_only_first,
        few if isinstance(steps, Unavailable) else few.replace("step", "recorded step"): count < FEW_STEPS,
        f"no recorded steps{' of the later epochs' * of_later}": isinstance(steps, Unavailable),
        "damaged trace": results.source.salvaged is not None,
        "device not recorded": results.source.unseen_device,
        "slow stage not clear": not blame.is_clear,
        "cause of the wait unknown": kind is VerdictClass.INPUT_BOUND and blame.cause is None,
        "the loss is small": share is not None and share < STRONG_PERCENT,
        "other programs on the machine": is_machine_busy(results),
        "much of the step is idle": kind is VerdictClass.DEVICE_BOUND
        and losses.device_percent < 100.0 - 2 * STRONG_PERCENT,
        "input may compete for the CPU": kind is VerdictClass.DEVICE_BOUND
        and (_nearly_contends(losses) or _may_contend(results)),
        "input may be too slow as well": kind is VerdictClass.HOST_CONTENTION and _is_slower_alone(results),
        "compute-only step not timed": isinstance(results.calibration, Unavailable),
    }
    found = tuple(words for words, applies in doubts.items() if applies)
    if count < VERY_FEW_STEPS or is_only_first:
        return Confidence.LOW, found[:1]  # that alone decides
    if len(found) > 2:
        return Confidence.LOW, found
    return Confidence.MEDIUM if found else Confidence.HIGH, found
