"""From results to the verdict: what holds the job back, how sure that is, what to try.

The rules look at measured times only, never at options or preset names.
"""

from pipeline_lab.analysis.causes import VerdictClass
from pipeline_lab.analysis.results import Results
from pipeline_lab.analysis.steps.step_phases import PhaseTimes
from pipeline_lab.analysis.verdict.findings import is_machine_busy
from pipeline_lab.analysis.verdict.input_causes import CPU_FULL_SHARE, find_blame
from pipeline_lab.analysis.verdict.losses import (
    CONTENTION_PERCENT,
    STRONG_PERCENT,
    Losses,
    classify,
    deciding_breakdown,
    measure_losses,
)
from pipeline_lab.analysis.verdict.verdict import Blame, Confidence, Verdict
from pipeline_lab.analysis.verdict.verdict_words import (
    collective_evidence,
    first_epoch_evidence,
    gather_evidence,
    idle_evidence,
    name_first_epoch,
    name_last_host,
    write_sentence,
)
from pipeline_lab.errors import Unavailable

FEW_STEPS, VERY_FEW_STEPS = 10, 3


def judge(results: Results, first_epoch: PhaseTimes | None = None) -> Verdict:
    """Say what holds the job back.

    Args:
        results: Of the job, or of its later epochs.
        first_epoch: Named apart where the results are those of the later ones alone.
    """
    losses = measure_losses(results)
    if losses is None:
        return _no_steps(results)
    kind = classify(losses)
    share_percent = losses.by_class.get(kind, 0.0)
    blame = find_blame(results, share_percent / 100.0) if kind is VerdictClass.INPUT_BOUND else Blame()
    cause = blame.cause.value if blame.cause is not None else _idle_cause(kind, results)
    return Verdict(
        verdict_class=kind,
        sentence=name_first_epoch(
            name_last_host(write_sentence(kind, cause, blame.stage, losses), results), first_epoch
        ),
        evidence=(
            *gather_evidence(kind, losses, results),
            *collective_evidence(results),
            *first_epoch_evidence(first_epoch, results.job_steps),
            *blame.evidence,
        ),
        confidence=_confidence(kind, losses, results, blame),
        stage=blame.stage,
        cause=cause,
        lost_percent=losses.by_class.get(kind),
        overlap_percent=None if blame.overlap_gain is None else 100.0 * blame.overlap_gain,
    )


def _idle_cause(kind: VerdictClass, results: Results) -> str | None:
    """Name what filled the steps' idle time when nothing kept the device from working."""
    breakdown = deciding_breakdown(results)
    if kind is not VerdictClass.IDLE_OTHER or isinstance(breakdown, Unavailable):
        return None
    return breakdown.idle_otherwise_cause.value


def _no_steps(results: Results) -> Verdict:
    reason = results.steps.reason if isinstance(results.steps, Unavailable) else "The steps have no length."
    evidence = () if isinstance(results.idle_gaps, Unavailable) else idle_evidence(results.idle_gaps)
    return Verdict(VerdictClass.UNKNOWN, VerdictClass.UNKNOWN.sentence.format(why=reason), evidence, Confidence.LOW)


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


def _confidence(kind: VerdictClass, losses: Losses, results: Results, blame: Blame) -> Confidence:
    """Start high, and lower it for every weakness; the serious ones make it low at once."""
    steps, job = results.steps, results.job_steps
    if isinstance(steps, Unavailable):
        count, is_only_first = 0 if isinstance(job, Unavailable) else job.count, False
    else:
        count, is_only_first = steps.count, steps.first_step_only
    if count < VERY_FEW_STEPS or is_only_first:
        return Confidence.LOW
    share = losses.by_class.get(kind)
    doubts = (
        count < FEW_STEPS,
        isinstance(steps, Unavailable),
        results.source.salvaged is not None,
        results.source.unseen_device,
        isinstance(results.calibration, Unavailable),
        is_machine_busy(results),
        share is not None and share < STRONG_PERCENT,
        not blame.is_clear,
        kind is VerdictClass.INPUT_BOUND and blame.cause is None,
        kind is VerdictClass.DEVICE_BOUND and losses.device_percent < 100.0 - 2 * STRONG_PERCENT,
        kind is VerdictClass.DEVICE_BOUND and (_nearly_contends(losses) or _may_contend(results)),
        kind is VerdictClass.HOST_CONTENTION and _is_slower_alone(results),
    )
    if sum(doubts) > 2:
        return Confidence.LOW
    return Confidence.MEDIUM if any(doubts) else Confidence.HIGH
