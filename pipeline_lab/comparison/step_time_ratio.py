"""How much longer or shorter a step takes in one recorded run than in another, and how sure that can be.

Compared is the geometric mean over the measured steps, so that a few long steps do not decide; the interval counts
neighboring steps for what they are worth together. It speaks for the two recordings, not for the two pipelines: what
the machine did between them is in no interval.
"""

import math

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.statistics.effective_sample import MIN_EFFECTIVE, difference_interval, estimate_mean
from pipeline_lab.statistics.outcome import Outcome

FloatArray = NDArray[np.float64]

MIN_STEPS = 20
STRETCHES = 5
CLEARLY = 1.5
"""Runs differ too clearly to need an interval if each fifth of one takes this many times as long as any fifth of the other.

A judgment: within one run, stretches of step times that wander on a shared machine differ by less.
"""
LARGE = 2.0
"""From here on people speak of a factor, not of a percentage."""
PRACTICAL_PERCENT = 3.0
"""A step is called faster or slower only where the whole interval lies beyond this: recorded separately, less is drift."""


@dataclass(frozen=True)
class ComparedSteps:
    """The steps of one run that are compared.

    Attributes:
        basis: Which they are: ``unprofiled``, ``all`` or ``trace``.
        times_ns: Length of each, shape (steps,), in the order of time.
    """

    basis: str
    times_ns: FloatArray


@dataclass(frozen=True)
class StepTimeRatio:
    """A candidate's time per step over the baseline's.

    Attributes:
        ratio, low, high: Of the geometric means, with the interval's bounds.
        confidence: Of the interval, 0 to 1.
        per: ``step``, or ``example`` where the batch sizes differ.
        basis: Which steps were compared: ``unprofiled``, ``all`` or ``trace``.
        steps: Compared steps of baseline and candidate.
        effective_steps: How many independent ones they are worth.
        caveat: Why there is no interval where the runs differ too clearly to need one; ``low`` and ``high`` are then the
            extremes of any two stretches of them. Empty with an interval.
    """

    ratio: float
    low: float
    high: float
    confidence: float
    per: str
    basis: str
    steps: tuple[int, int]
    effective_steps: tuple[float, float]
    caveat: str = ""

    @property
    def outcome(self) -> Outcome:
        """What the interval says beyond the practical threshold."""
        threshold = PRACTICAL_PERCENT / 100
        if self.high < 1 - threshold:
            return Outcome.FASTER
        if self.low > 1 + threshold:
            return Outcome.SLOWER
        if self.low >= 1 - threshold and self.high <= 1 + threshold:
            return Outcome.EQUIVALENT
        return Outcome.UNDECIDED

    @property
    def percent(self) -> float:
        """Longer by this many percent; negative for a shorter step."""
        return 100 * (self.ratio - 1)

    @property
    def bounds_percent(self) -> tuple[float, float]:
        return 100 * (self.low - 1), 100 * (self.high - 1)


def compared_steps(diagnosis: Diagnosis, basis: str) -> ComparedSteps | Unavailable:
    """Return a run's steps, warm-up left out.

    Args:
        diagnosis: Of the run.
        basis: ``unprofiled`` or ``all`` steps as the job timed them, or those of the ``trace``.
    """
    if basis == "trace":
        steps = diagnosis.steps
        return steps if isinstance(steps, Unavailable) else ComparedSteps(basis, steps.training_step_ns)
    job = diagnosis.job_steps
    return (
        job if isinstance(job, Unavailable) else ComparedSteps(basis, _job_times(job, unprofiled=basis == "unprofiled"))
    )


def common_basis(diagnoses: tuple[Diagnosis, ...]) -> str:
    """Choose steps that all runs have: unprofiled ones where every run has enough of them."""
    if any(isinstance(diagnosis.job_steps, Unavailable) for diagnosis in diagnoses):
        return "trace"
    unprofiled = [compared_steps(diagnosis, "unprofiled") for diagnosis in diagnoses]
    enough = all(isinstance(times, ComparedSteps) and len(times.times_ns) >= MIN_STEPS for times in unprofiled)
    return "unprofiled" if enough else "all"


def compare_step_times(
    baseline: ComparedSteps | Unavailable,
    candidate: ComparedSteps | Unavailable,
    confidence: float,
    batch_sizes: tuple[float, float] | None = None,
) -> StepTimeRatio | Unavailable:
    """Compare two recorded runs' steps.

    Args:
        baseline, candidate: Their steps.
        confidence: Of the interval, 0 to 1.
        batch_sizes: Examples per step of both; given, the time per example is compared.
    """
    if isinstance(baseline, Unavailable):
        return Unavailable(f"The baseline's steps are unknown: {baseline.reason}")
    if isinstance(candidate, Unavailable):
        return candidate
    logs = [np.log(times.times_ns[times.times_ns > 0]) for times in (baseline, candidate)]
    fewest = min(map(len, logs))
    shift = math.log(batch_sizes[0] / batch_sizes[1]) if batch_sizes else 0.0
    first, second = (estimate_mean(log) if len(log) >= MIN_STEPS else None for log in logs)
    if first is None or second is None or not (first.is_enough and second.is_enough):
        reason = (
            f"Only {fewest} steps were measured; record at least {MIN_STEPS}, better some hundred."
            if first is None or second is None
            else f"The step times wander so slowly that they are worth fewer than {MIN_EFFECTIVE:.0f} independent steps; "
            "record more steps, or race the two."
        )
        return _compare_stretches(logs, candidate.basis, confidence, reason, shift, batch_sizes is not None)
    low, high = difference_interval(first, second, confidence)
    return StepTimeRatio(
        ratio=math.exp(second.mean - first.mean + shift),
        low=math.exp(low + shift),
        high=math.exp(high + shift),
        confidence=confidence,
        per="example" if batch_sizes else "step",
        basis=candidate.basis,
        steps=(len(logs[0]), len(logs[1])),
        effective_steps=(first.effective_count, second.effective_count),
    )


def _compare_stretches(
    logs: list[FloatArray], basis: str, confidence: float, reason: str, shift: float, is_per_example: bool
) -> StepTimeRatio | Unavailable:
    """Compare runs that no interval can be given for, where every stretch of one is far shorter than any of the other."""
    if min(map(len, logs)) < STRETCHES:
        return Unavailable(reason)
    first, second = (np.array([part.mean() for part in np.array_split(log, STRETCHES)]) for log in logs)
    low, high = second.min() - first.max() + shift, second.max() - first.min() + shift
    if max(low, -high) < math.log(CLEARLY):
        return Unavailable(reason)
    return StepTimeRatio(
        ratio=math.exp(logs[1].mean() - logs[0].mean() + shift),
        low=math.exp(low),
        high=math.exp(high),
        confidence=confidence,
        per="example" if is_per_example else "step",
        basis=basis,
        steps=(len(logs[0]), len(logs[1])),
        effective_steps=(1.0, 1.0),
        caveat=reason,
    )


def _job_times(job: JobSteps, *, unprofiled: bool) -> FloatArray:
    left_out = job.table.column("warmup").to_numpy(zero_copy_only=False).astype(bool)
    if unprofiled:
        left_out = left_out | job.table.column("profiled").to_numpy(zero_copy_only=False).astype(bool)
    return np.asarray(job.table.column("step_ns").to_numpy()[~left_out], np.float64)
