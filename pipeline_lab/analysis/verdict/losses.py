"""How a step divides among the classes of the verdict, and which of them gives the run its name.

Thresholds are XProf's where it has them (``input_pipeline_analyzer``: 5 % of the step makes a job moderately, 20 %
highly input-bound).
"""

from dataclasses import field, replace

import numpy as np

from pipeline_lab.analysis.causes import Busy, GapCause, VerdictClass
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.results import Results
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.steps.job_steps import MODERATE_PERCENT, JobSteps
from pipeline_lab.analysis.verdict.findings import ENDS_PERCENT, is_machine_busy
from pipeline_lab.analysis.verdict.input_causes import CPU_FULL_SHARE, CPU_OWN_SHARE
from pipeline_lab.analysis.verdict.input_facts import LEAST_CORES
from pipeline_lab.analysis.verdict.judged_parts import deciding_breakdown
from pipeline_lab.analysis.verdict.recording_effects import find_recording_cost, has_device_work, like_all_steps
from pipeline_lab.analysis.verdict.unseen_breaks import (
    FEWEST_STEPS,
    find_iterator_percent,
    find_mostly_predicts,
    find_unseen_percent,
)
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable

STRONG_PERCENT = 20.0
"""Any other loss has to reach this share to give the run its name."""

CONTENTION_PERCENT = 10.0
"""Competition for the processor is the exception: no other loss shows less of itself in a trace."""

_NEEDED_PERCENT = {VerdictClass.INPUT_BOUND: MODERATE_PERCENT, VerdictClass.HOST_CONTENTION: CONTENTION_PERCENT}

UNFAIR_PERCENT, FEWEST_RECORDED = 10.0, 5
"""Points by which the wait of all steps differs from that in the windows where all steps decide.

The profiler alone moves it: recorded steps of short calls take up to a tenth longer.
"""
UNLIKE = 0.2
"""Share by which the mean of all steps differs from that of the recorded ones where it is given for the step's time."""
SETS_PACE = 0.8
"""A pipeline that alone needs this part of the step as it ran, or more, sets the pace of the job.

Beside the step it takes longer than alone where both want Python's lock or the same cores: Python generators, which set the pace
for certain, needed 0.81 to 1.04 of it (12 runs of `benchmarks/verdict`).
"""
LONGER = 2.0
"""Where the mean step is n times as long as the usual one, most time passes in a few steps, and the pace of the others says little."""


@dataclass(frozen=True)
class Pace:
    """A pipeline that is slower than the step: both alone, per batch."""

    pipeline_ns: float
    step_ns: float


@dataclass(frozen=True)
class Losses:
    """Where a step's time goes, percent of the step; what is not lost is device-busy time.

    Attributes:
        by_class: Each loss under the class that it would give the run.
        step_ns: Mean training step; a loss of n percent is that share of it.
        worker: What is busy in the rest of it.
        pace: Filled where the pipeline sets the job's pace, though most of what it takes does not show as waiting.
        is_estimated: The competition for the processor is estimated from processor times: the step alone was not timed.
        are_recorded: The shares are those of the recorded steps; else of all measured ones.
        slowed_percent: What competition with the pipeline lengthens the work by: it counts as lost, though the device is busy.
        waiting_percent: What of the loss to input shows as waiting; None where all of it does.
        unseen_percent: What breaks between steps take that no window saw, by cause, part of what is idle otherwise: setting up and
            tearing down iterators, checkpoints, and Python, which stands for what else lies between epochs, and for predictions.
        predicting_percent: Of Python, many calls of Keras' ``predict`` with a batch at a time between steps.
    """

    by_class: dict[VerdictClass, float]
    step_ns: float
    worker: Busy
    pace: Pace | None = None
    is_estimated: bool = False
    are_recorded: bool = True
    slowed_percent: float = 0.0
    waiting_percent: float | None = None
    unseen_percent: dict[GapCause, float] = field(default_factory=dict)
    predicting_percent: float = 0.0

    @property
    def breaking_percent(self) -> float:
        """What lies between epochs beside iterators and checkpoints, and no window saw."""
        return self.unseen_percent.get(GapCause.PYTHON, 0.0) - self.predicting_percent

    @property
    def device_percent(self) -> float:
        return max(0.0, 100.0 - sum(self.by_class.values()))

    @property
    def busy_percent(self) -> float:
        """Share of the step in which the device is busy, as the picture of a step shows it."""
        return self.device_percent + self.slowed_percent


def measure_losses(results: Results) -> Losses | None:
    """Divide the step among the classes; None if there are no steps at all."""
    breakdown, steps, job = deciding_breakdown(results), results.steps, results.job_steps
    if results.source.unseen_device and isinstance(job, Unavailable):
        return _without_device(results)
    if (
        results.source.unseen_device
        or isinstance(breakdown, Unavailable)
        or isinstance(steps, Unavailable)
        or not breakdown.total_ns
    ):
        waiting = None if isinstance(job, Unavailable) else job.wait_percent
        if isinstance(job, Unavailable) or waiting is None:
            return None
        return _without_trace(results, job, waiting)
    has_device, recording = has_device_work(breakdown), find_recording_cost(results)
    plain = like_all_steps(results, breakdown)
    parts: dict[VerdictClass, float] = {
        VerdictClass.INPUT_BOUND: plain.input_wait_ns,
        VerdictClass.HOST_TO_DEVICE_BOUND: plain.host_to_device_ns,
        VerdictClass.COMPILE_BOUND: plain.compile_ns,
        VerdictClass.DISPATCH_BOUND: plain.dispatch_ns,
        VerdictClass.IDLE_OTHER: plain.idle_otherwise_ns + (plain.host_compute_ns if has_device else 0),
    }
    by_class = {kind: 100.0 * part_ns / max(1, plain.total_ns) for kind, part_ns in parts.items()}
    step_ns = float(steps.training_step_ns.mean()) * plain.total_ns / breakdown.total_ns
    trusts_trace = breakdown.collective_ns or (has_device and _is_fair_sample(job))
    unlike = UNFAIR_PERCENT if recording is None or has_device else 0.0
    in_windows = 100.0 * breakdown.input_wait_ns / breakdown.total_ns
    of_all = None if trusts_trace else _waiting_of_all(results, in_windows, unlike)
    if isinstance(job, JobSteps) and job.count >= FEWEST_STEPS:
        mean_ns = job.mean_ns if recording is None else recording.plain_ns
        step_ns = mean_ns if abs(mean_ns - step_ns) > UNLIKE * step_ns else step_ns
    if of_all is not None:
        left = (100.0 - of_all) / max(1e-9, 100.0 - by_class[VerdictClass.INPUT_BOUND])
        by_class = {kind: percent * left for kind, percent in by_class.items()} | {VerdictClass.INPUT_BOUND: of_all}
    working = 100.0 - sum(by_class.values())
    launching, waiting = by_class[VerdictClass.DISPATCH_BOUND], by_class[VerdictClass.INPUT_BOUND]
    timed = None if has_device else _timed_percent(results)
    hidden = _hidden_percent(results, working=working + launching if timed is None else timed, waiting=waiting)
    shared = 0.0 if has_device else _shared_percent(results, waiting)
    is_estimated = isinstance(results.calibration, Unavailable) and shared > 0
    hidden = shared if is_estimated else hidden
    alone = _alone_percent(results)
    if has_device and launching >= CONTENTION_PERCENT:
        alone = max(0.0, alone - working)  # the device works for part of it, launching alone takes the rest
    stretched = min(hidden, max(0.0, launching - alone))
    by_class[VerdictClass.DISPATCH_BOUND] = launching - stretched
    by_class[VerdictClass.HOST_CONTENTION] = min(working + stretched, hidden)
    worker = Busy.DEVICE if has_device else Busy.HOST_COMPUTE
    if breakdown.device_copy_ns > breakdown.device_compute_ns:
        worker = Busy.COPYING
    if results.source.is_emulated:
        worker = Busy.EMULATED
    slowed = max(0.0, min(working, hidden - stretched))
    losses = Losses(by_class, step_ns, worker, None, is_estimated, of_all is None, slowed)
    calibration = results.calibration
    if not isinstance(calibration, Unavailable) and not is_machine_busy(results):
        is_usual = isinstance(job, Unavailable) or job.mean_ns <= LONGER * calibration.step_ns
        losses = _blame_pace(losses, calibration) if is_usual else losses
    return _with_predicts(_with_breaks(losses, results), results)


def _without_trace(results: Results, job: JobSteps, waiting: float) -> Losses:
    """Divide the mean step of a job of which no window shows steps: what is not known to be lost counts as the device's.

    Args:
        results: Of the job.
        job: Its steps, all measured ones.
        waiting: Share of them in input waits, percent.
    """
    calibration = results.calibration
    usual = 1.0 if isinstance(calibration, Unavailable) else min(1.0, calibration.step_ns / job.mean_ns)
    waiting_of_usual = min(100.0, waiting / usual)
    timed = _timed_percent(results)
    working = 100.0 - waiting_of_usual if timed is None else timed
    hidden = usual * _hidden_percent(results, working=working, waiting=waiting_of_usual)
    alone = usual * _alone_percent(results)
    may_work_on = isinstance(calibration, Unavailable) and not tables.valid(job.table, "compute_ns").any()
    known = waiting + hidden + (0.0 if isinstance(calibration, Unavailable) else alone)
    breaking = 0.0 if may_work_on else min(100.0 * job.break_total_ns / job.total_ns, max(0.0, 100.0 - known))
    breaking = breaking if breaking >= ENDS_PERCENT else 0.0
    ending = min(breaking, find_iterator_percent(results, job))
    predicting = min(_predicting_percent(job), max(0.0, 100.0 - known - breaking))
    by_class = {VerdictClass.INPUT_BOUND: waiting, VerdictClass.HOST_CONTENTION: hidden}
    unseen = {GapCause.ITERATOR_END: ending, GapCause.PYTHON: breaking - ending + predicting}
    if idle := sum(unseen.values()):
        by_class[VerdictClass.IDLE_OTHER] = idle
    worker = Busy.EMULATED if results.source.is_emulated else Busy.UNTRACED
    return Losses(
        by_class,
        job.mean_ns,
        worker,
        are_recorded=False,
        unseen_percent=unseen if idle else {},
        predicting_percent=predicting,
    )


def _predicting_percent(job: JobSteps) -> float:
    """Return what many short calls of ``predict`` take of steps that last from one call of the script's own to the next."""
    predicts = job.predicts if job.own_call is not None else None
    return predicts.percent if predicts is not None and predicts.matter else 0.0


def _with_breaks(losses: Losses, results: Results) -> Losses:
    """Count the breaks between epochs that windows did not see: what all steps take beyond the recorded ones, at most that.

    Waits stay where they are those of all steps already.
    """
    job, unseen = results.job_steps, find_unseen_percent(results)
    if unseen is None or isinstance(job, Unavailable):
        return losses
    percent = sum(unseen.values())
    input_percent = losses.by_class[VerdictClass.INPUT_BOUND]
    waiting = input_percent if losses.waiting_percent is None else losses.waiting_percent
    kept = 0.0 if losses.are_recorded else min(waiting, 100.0 - percent)
    return replace(_with_idle(losses, job, percent, kept), unseen_percent=unseen)


def _with_idle(losses: Losses, job: JobSteps, percent: float, kept: float = 0.0) -> Losses:
    """Count so much of all steps as idle otherwise, in percent, and let the other losses share the rest of them.

    Args:
        losses: Without it.
        job: All steps.
        percent: That is idle.
        kept: Percent of waiting that stays as it is.
    """
    left = (100.0 - percent - kept) / max(1e-9, 100.0 - kept)
    by_class = {kind: each * left for kind, each in losses.by_class.items()}
    by_class[VerdictClass.IDLE_OTHER] += percent
    by_class[VerdictClass.INPUT_BOUND] += kept * (1.0 - left)
    waiting = losses.waiting_percent
    return replace(
        losses,
        by_class=by_class,
        step_ns=job.mean_ns,
        are_recorded=False,
        slowed_percent=losses.slowed_percent * left,
        waiting_percent=None if waiting is None else kept + (waiting - kept) * left,
    )


def _with_predicts(losses: Losses, results: Results) -> Losses:
    """Count calls of ``predict`` that take most of the time as lost, though windows saw in them what TensorFlow does for any step."""
    job, percent = results.job_steps, find_mostly_predicts(results)
    if isinstance(job, Unavailable) or percent is None:
        return losses
    unseen = {cause: each * (1.0 - percent / 100.0) for cause, each in losses.unseen_percent.items()}
    return replace(
        _with_idle(losses, job, percent),
        unseen_percent=unseen | {GapCause.PYTHON: unseen.get(GapCause.PYTHON, 0.0) + percent},
        predicting_percent=percent,
    )


def _without_device(results: Results) -> Losses | None:
    """Return what is known where nothing was recorded of the device: only how long the job waited for input."""
    steps, stalls = results.steps, results.input_stalls
    if isinstance(steps, Unavailable) or isinstance(stalls, Unavailable) or stalls.wait_percent < MODERATE_PERCENT:
        return None
    waiting = {VerdictClass.INPUT_BOUND: stalls.wait_percent}
    return Losses(waiting, float(steps.training_step_ns.mean()), Busy.UNTRACED)


def _waiting_of_all(results: Results, in_windows: float, unlike: float) -> float | None:
    """Return the share of all steps that is lost to input where the windows are no fair sample of them, else None.

    Windows are few, and rarely hold the beginning of an epoch. All steps give the number; the windows tell its cause, and
    how much of a wait the device is busy.

    Of a wait the device may hide as much as in the windows, but no more than it works in a step: the beginning of an epoch
    outlasts that.

    Args:
        results: Of the job.
        in_windows: Exposed input wait, percent of the recorded steps.
        unlike: Points by which they have to differ; none where recording is known to slow the work beside the waits.
    """
    job, stalls, steps = results.job_steps, results.input_stalls, results.steps
    if isinstance(job, Unavailable) or isinstance(stalls, Unavailable) or isinstance(steps, Unavailable):
        return None
    waiting = job.wait_percent
    if waiting is None or job.count < FEWEST_STEPS:
        return None
    if job.has_hidden_waits:  # the job knows itself what the device hides
        return None if abs(waiting - in_windows) < unlike else waiting
    if abs(waiting - stalls.call_percent) < unlike:
        return None
    hidden = 1.0 - min(1.0, in_windows / stalls.call_percent) if stalls.call_percent else 0.0
    works_ns = float(steps.training_step_ns.mean()) * (1.0 - in_windows / 100.0)
    waits_ns = tables.ints(job.table, "wait_ns")[
        tables.valid(job.table, "wait_ns") & ~tables.bools(job.table, "warmup")
    ]
    hidden_ns = np.minimum(hidden * waits_ns, works_ns).sum()
    return waiting * (1.0 - float(hidden_ns) / max(1.0, float(waits_ns.sum())))


def _is_fair_sample(job: JobSteps | Unavailable) -> bool:
    """Say whether the recorded steps wait like all others, by the job's own times.

    Then the trace tells what fills the calls for a batch: ops of a distributed iterator, which unpacks sparse tensors, are none
    of waiting. False where too few are known.
    """
    if isinstance(job, Unavailable) or job.wait_percent is None:
        return False
    recorded = tables.bools(job.table, "profiled") & ~tables.bools(job.table, "warmup")
    known = recorded & tables.valid(job.table, "wait_ns")
    step_ns, wait_ns = (int(tables.ints(job.table, name)[known].sum()) for name in ("step_ns", "wait_ns"))
    is_known = known.sum() >= FEWEST_RECORDED and step_ns > 0
    return bool(is_known and abs(100.0 * wait_ns / step_ns - job.wait_percent) < UNFAIR_PERCENT)


def choose_class(losses: Losses, *, but_for: VerdictClass | None = None) -> VerdictClass:
    """Choose the class: the largest of the losses that are large enough for their kind, else the device itself.

    Where no loss is, but waits and competition for the processor are together, it is the competition, which is the larger of them.

    Args:
        losses: How the step divides.
        but_for: A class that does not come into question.
    """
    large = {
        kind: percent
        for kind, percent in losses.by_class.items()
        if percent >= _NEEDED_PERCENT.get(kind, STRONG_PERCENT) and kind is not but_for
    }
    to_input = sum(losses.by_class.get(kind, 0.0) for kind in _NEEDED_PERCENT)
    if not large and to_input >= CONTENTION_PERCENT:  # less than half of it waits
        return VerdictClass.HOST_CONTENTION
    return max(large, key=large.__getitem__) if large else VerdictClass.DEVICE_BOUND


def _blame_pace(losses: Losses, calibration: Calibration) -> Losses:
    """Count a pipeline that sets the job's pace as a loss to input, though the step fills the time that it lacks.

    With overlap a step takes the longer of pipeline and step alone. Where that is the pipeline, a step that it slows down
    (they share the processor, or Python's lock) waits less for it, but ends no sooner: all that the pipeline takes beyond
    the step alone is lost to input. The other losses shrink alike. Where competition for the processor would give the
    run its name, a pipeline that is somewhat faster is blamed if the job is seen to wait for it, and if what is lost to it is more
    than what the step takes beyond the pipeline alone.
    """
    step_ns = calibration.step_ns
    if calibration.pipeline_only_ns is None:
        return losses
    pace_ns = min(calibration.pipeline_only_ns, step_ns)
    waiting = losses.by_class[VerdictClass.INPUT_BOUND]
    lost = 100.0 * (pace_ns - calibration.device_only_ns) / step_ns
    beyond_pace = 100.0 * (step_ns - pace_ns) / step_ns
    is_larger = (
        waiting >= MODERATE_PERCENT and lost > beyond_pace and choose_class(losses) is VerdictClass.HOST_CONTENTION
    )
    if not (pace_ns >= SETS_PACE * step_ns or is_larger) or lost <= waiting:
        return losses
    left = (100.0 - lost) / (100.0 - waiting)
    shrunk = {kind: percent * left for kind, percent in losses.by_class.items()}
    pace = Pace(pace_ns, calibration.device_only_ns) if waiting < lost / 2 else None
    by_class = shrunk | {VerdictClass.INPUT_BOUND: lost}
    slowed = losses.slowed_percent * left + losses.busy_percent * (1.0 - left)  # the device is busy as long as before
    return replace(losses, by_class=by_class, pace=pace, slowed_percent=slowed, waiting_percent=waiting)


def _alone_percent(results: Results) -> float:
    """Return the compute-only step, percent of the end-to-end step; dispatch beyond that is not the step's own."""
    calibration = results.calibration
    return 100.0 if isinstance(calibration, Unavailable) else calibration.utilisation_percent


def _timed_percent(results: Results) -> float | None:
    """Return what the job itself saw of a step's work, percent of the step: windows also hold what lies between epochs."""
    calibration = results.calibration
    if isinstance(calibration, Unavailable) or calibration.busy_ns is None:
        return None
    return 100.0 * calibration.busy_ns / calibration.step_ns


def _shared_percent(results: Results, waiting: float) -> float:
    """Estimate the same where the step alone was not timed, percent of the step: a step that keeps all cores busy on a CPU
    would have those that the pipeline uses beside it.

    The pipeline's work is what tf.data's model says, which counts sleeping too; so cores have to be full. Where other programs
    fill part of them, the job has to take most of what they leave, and its threads are at work for that part of the model's times.

    Args:
        results: Of a job without a device.
        waiting: Share of the step in exposed input waits, during which the pipeline takes nothing from the step.
    """
    model, load, job = results.live_model, results.job_load, results.job_steps
    if isinstance(model, Unavailable) or isinstance(load, Unavailable) or isinstance(job, Unavailable):
        return 0.0
    left = max(LEAST_CORES, load.cores - load.other_cores)
    is_full = load.cores_used >= CPU_FULL_SHARE * left and load.cores_used >= CPU_OWN_SHARE * load.cores
    if not is_full or not job.count:
        return 0.0
    work_ns = sum(stage.work_ns for stage in model.stages) * min(1.0, left / load.cores)
    return max(0.0, min(100.0, 100.0 * work_ns / load.cpu_ns_per_step) - waiting)


def _hidden_percent(results: Results, *, working: float, waiting: float) -> float:
    """Return how much of the step's work the pipeline's competition for the processor explains, percent of the step.

    That is what the work exceeds the compute-only step by, but no more than the pipeline itself takes beyond what
    shows as waiting. On a machine that others use, nothing is blamed on the pipeline.

    Args:
        results: For the calibration.
        working: Share of the step without any known loss.
        waiting: Share of the step in exposed input waits.
    """
    calibration = results.calibration
    if isinstance(calibration, Unavailable) or calibration.pipeline_only_ns is None or is_machine_busy(results):
        return 0.0
    percent_per_ns = 100.0 / calibration.step_ns
    excess = working - calibration.device_only_ns * percent_per_ns
    return max(0.0, min(excess, calibration.pipeline_only_ns * percent_per_ns - waiting))
