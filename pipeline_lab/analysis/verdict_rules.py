"""From results to the verdict: what holds the job back, how sure that is, what to try.

The rules look at measured times only, never at options or preset names. Thresholds are XProf's where it has them
(``input_pipeline_analyzer``: 5 % of the step makes a job moderately, 20 % highly input-bound).
"""

from dataclasses import dataclass

import numpy as np

from pipeline_lab.analysis.calibration import Calibration
from pipeline_lab.analysis.findings import BUSY_MACHINE_PERCENT
from pipeline_lab.analysis.gap_causes import GapCause
from pipeline_lab.analysis.idle_gaps import IdleGaps
from pipeline_lab.analysis.results import Results
from pipeline_lab.analysis.suggestions import suggest
from pipeline_lab.analysis.verdict import Confidence, Evidence, Verdict, VerdictClass
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import format_count, format_duration, format_percent

MODERATE_PERCENT = 5.0
"""A wait for input of this share of the step is worth acting on."""

STRONG_PERCENT = 20.0
"""Any other loss has to reach this share to give the run its name."""

OVERLAP_TOLERANCE = 0.15
"""G + D within this share of the step, and both at least as large, means that they do not overlap."""

FEW_STEPS, VERY_FEW_STEPS = 10, 3

_OTHER_CAUSES = (GapCause.HOST_OPERATION, GapCause.CHECKPOINT, GapCause.PYTHON, GapCause.UNKNOWN)


@dataclass(frozen=True)
class Losses:
    """Where a step's time goes, percent of the step; what is not lost is the device at work.

    Attributes:
        by_class: Each loss under the class that it would give the run.
        step_ns: Median training step.
        device_name: What works: ``the device`` or ``the training computation`` (host compute).
    """

    by_class: dict[VerdictClass, float]
    step_ns: float
    device_name: str

    @property
    def device_percent(self) -> float:
        return max(0.0, 100.0 - sum(self.by_class.values()))


def judge(results: Results) -> Verdict:
    """Say what holds the job back."""
    losses = measure_losses(results)
    if losses is None:
        return _no_steps(results)
    kind = classify(losses)
    cause = find_cause(kind, results)
    return Verdict(
        verdict_class=kind,
        sentence=_sentence(kind, cause, losses),
        evidence=_evidence(kind, losses, results),
        confidence=_confidence(kind, losses, results),
        suggestions=suggest(kind, cause, losses.by_class.get(kind, 0.0), results.calibration),
        cause=cause,
    )


def measure_losses(results: Results) -> Losses | None:
    """Divide the step among the classes; None if there are no steps at all."""
    breakdown, steps, job = results.step_breakdown, results.steps, results.job_steps
    if isinstance(breakdown, Unavailable) or isinstance(steps, Unavailable) or not breakdown.total_ns:
        if isinstance(job, Unavailable) or not job.total_ns:
            return None
        waiting = 100.0 * job.wait_total_ns / job.total_ns
        by_class = {VerdictClass.INPUT_BOUND: waiting}
        hidden = _hidden_percent(results, working=100.0 - waiting, waiting=waiting)
        return Losses(by_class | {VerdictClass.HOST_CONTENTION: hidden}, job.median_ns, "the training step")
    has_device = breakdown.device_compute_ns > 0
    parts = {
        VerdictClass.INPUT_BOUND: breakdown.input_wait_ns,
        VerdictClass.HOST_TO_DEVICE_BOUND: breakdown.host_to_device_ns,
        VerdictClass.COMPILE_BOUND: breakdown.compile_ns,
        VerdictClass.DISPATCH_BOUND: breakdown.dispatch_ns,
        VerdictClass.IDLE_OTHER: breakdown.other_ns + (breakdown.host_compute_ns if has_device else 0),
    }
    by_class = {kind: 100.0 * part_ns / breakdown.total_ns for kind, part_ns in parts.items()}
    working = 100.0 - sum(by_class.values())
    launching, waiting = by_class[VerdictClass.DISPATCH_BOUND], by_class[VerdictClass.INPUT_BOUND]
    hidden = _hidden_percent(results, working=working + launching, waiting=waiting)
    by_class[VerdictClass.HOST_CONTENTION] = min(working, hidden)
    name = "the device" if has_device else "the training computation"
    return Losses(by_class, float(np.median(steps.training_step_ns)), name)


def classify(losses: Losses) -> VerdictClass:
    """Choose the class: the largest of the losses that are large enough for their kind, else the device itself."""
    large = {kind: percent for kind, percent in losses.by_class.items() if percent >= _needed_percent(kind)}
    return max(large, key=large.__getitem__) if large else VerdictClass.DEVICE_BOUND


def _needed_percent(kind: VerdictClass) -> float:
    return MODERATE_PERCENT if kind is VerdictClass.INPUT_BOUND else STRONG_PERCENT


def find_cause(kind: VerdictClass, results: Results) -> str | None:
    """Name the cause within the class, where the numbers show it."""
    if kind is VerdictClass.INPUT_BOUND and not isinstance(results.calibration, Unavailable):
        return "no-overlap" if _lacks_overlap(results.calibration) else None
    if kind is VerdictClass.IDLE_OTHER and not isinstance(results.idle_gaps, Unavailable):
        gaps = results.idle_gaps
        return max(_OTHER_CAUSES, key=lambda cause: gaps.by_cause_ns[cause]).value
    return None


def _lacks_overlap(calibration: Calibration) -> bool:
    device, pipeline, step = calibration.device_only_ns, calibration.pipeline_only_ns, calibration.step_ns
    if pipeline is None or min(device, pipeline) < OVERLAP_TOLERANCE * step:
        return False
    return abs(device + pipeline - step) <= OVERLAP_TOLERANCE * step


def _hidden_percent(results: Results, *, working: float, waiting: float) -> float:
    """Return how much of the step's work the pipeline's competition for the processor explains, percent of the step.

    That is what the work exceeds the step on a held batch by, but no more than the pipeline itself takes beyond what
    shows as waiting. On a machine that others use, nothing is blamed on the pipeline.

    Args:
        results: For the calibration.
        working: Share of the step without any known loss.
        waiting: Share of the step in exposed input waits.
    """
    calibration = results.calibration
    if isinstance(calibration, Unavailable) or calibration.pipeline_only_ns is None or _is_machine_busy(results):
        return 0.0
    percent_per_ns = 100.0 / calibration.step_ns
    excess = working - calibration.device_only_ns * percent_per_ns
    return max(0.0, min(excess, calibration.pipeline_only_ns * percent_per_ns - waiting))


def _is_machine_busy(results: Results) -> bool:
    return results.other_cpu_percent is not None and results.other_cpu_percent >= BUSY_MACHINE_PERCENT


def _sentence(kind: VerdictClass, cause: str | None, losses: Losses) -> str:
    share = format_percent(losses.by_class.get(kind, losses.device_percent))
    name = losses.device_name
    step = format_duration(losses.step_ns)
    lost = format_duration(losses.by_class.get(kind, 0.0) / 100.0 * losses.step_ns)
    if kind is VerdictClass.INPUT_BOUND:
        why = ", because input and training take turns instead of overlapping" if cause == "no-overlap" else ""
        return (
            f"The job waits for input: {lost} of each {step} step ({share}) pass before the next batch is there{why}."
        )
    if kind is VerdictClass.HOST_TO_DEVICE_BOUND:
        return f"Copying input to the device holds it up for {lost} of each {step} step ({share})."
    if kind is VerdictClass.COMPILE_BOUND:
        return (
            f"Tracing and compiling take {lost} of each {step} step ({share}); the times are not those of a steady job."
        )
    if kind is VerdictClass.DISPATCH_BOUND:
        return f"TensorFlow's own handling of ops leaves {name} idle for {lost} of each {step} step ({share})."
    if kind is VerdictClass.IDLE_OTHER:
        return f"{_IDLE_SUBJECTS.get(cause or '', 'Something unknown')} leaves {name} idle for {lost} of each {step} step ({share})."
    if kind is VerdictClass.HOST_CONTENTION:
        return (
            f"The step works {lost} of {step} ({share}) longer than on a held batch, without waiting: the input "
            "pipeline takes processor time from it."
        )
    return f"Input is not the limit: {name} is at work for {share} of each {step} step."


_IDLE_SUBJECTS = {
    GapCause.PYTHON.value: "Python code between TensorFlow's calls",
    GapCause.HOST_OPERATION.value: "A host operation",
    GapCause.CHECKPOINT.value: "Writing checkpoints",
}


_LOSS_NAMES = {
    VerdictClass.HOST_TO_DEVICE_BOUND: "copying input to the device",
    VerdictClass.COMPILE_BOUND: "tracing and compiling",
    VerdictClass.DISPATCH_BOUND: "dispatch",
    VerdictClass.IDLE_OTHER: "idle for other reasons",
    VerdictClass.HOST_CONTENTION: "competition for the processor",
}


def _no_steps(results: Results) -> Verdict:
    reason = results.steps.reason if isinstance(results.steps, Unavailable) else "The steps have no length."
    evidence = () if isinstance(results.idle_gaps, Unavailable) else _idle_evidence(results.idle_gaps)
    return Verdict(VerdictClass.UNKNOWN, f"What holds the job back cannot be said. {reason}", evidence, Confidence.LOW)


def _evidence(kind: VerdictClass, losses: Losses, results: Results) -> tuple[Evidence, ...]:
    found = [Evidence("step", format_duration(losses.step_ns))]
    if not isinstance(results.steps, Unavailable):
        found.append(Evidence("recorded steps", f"{format_count(results.steps.count)} ({results.steps.marker})"))
    if not isinstance(results.input_stalls, Unavailable):
        stalls = results.input_stalls
        found.append(Evidence("input wait", f"{format_percent(stalls.wait_percent)} of the steps"))
        found.append(Evidence("exposed input wait", f"{format_percent(stalls.exposed_percent)} of the steps"))
    if kind in losses.by_class and kind is not VerdictClass.INPUT_BOUND:
        found.append(Evidence(_LOSS_NAMES[kind], f"{format_percent(losses.by_class[kind])} of the steps"))
    found.append(Evidence(f"{losses.device_name} at work", f"{format_percent(losses.device_percent)} of the steps"))
    job = results.job_steps
    if not isinstance(job, Unavailable) and job.total_ns:
        waiting = format_percent(100.0 * job.wait_total_ns / job.total_ns)
        found.append(Evidence("wait over all steps, recorded or not", f"{waiting} of {format_count(job.count)} steps"))
    return (*found, *_calibration_evidence(results.calibration))


def _calibration_evidence(calibration: Calibration | Unavailable) -> tuple[Evidence, ...]:
    if isinstance(calibration, Unavailable):
        return ()
    alone = calibration.pipeline_only_ns
    return (
        Evidence("step on a held batch", format_duration(calibration.device_only_ns)),
        *(() if alone is None else (Evidence("pipeline alone, per batch", format_duration(alone)),)),
        Evidence("utilisation", format_percent(calibration.utilisation_percent)),
    )


def _idle_evidence(gaps: IdleGaps) -> tuple[Evidence, ...]:
    window_ns = gaps.busy_ns + gaps.idle_ns
    if not window_ns:
        return ()
    return (
        Evidence(f"idle time of {gaps.device}", f"{format_percent(100.0 * gaps.idle_ns / window_ns)} of the capture"),
    )


def _confidence(kind: VerdictClass, losses: Losses, results: Results) -> Confidence:
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
        _is_machine_busy(results),
        share is not None and share < STRONG_PERCENT,
        kind is VerdictClass.DEVICE_BOUND and losses.device_percent < 100.0 - 2 * STRONG_PERCENT,
    )
    if sum(doubts) > 2:
        return Confidence.LOW
    return Confidence.MEDIUM if any(doubts) else Confidence.HIGH
