"""What lies between epochs that no profile window saw: iterators that are set up and torn down, and what else breaks the training off."""

from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.results import Results
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.analysis.verdict.findings import ENDS_PERCENT
from pipeline_lab.analysis.verdict.recording_effects import has_device_work, like_all_steps
from pipeline_lab.errors import Unavailable

FEWEST_STEPS = 10
"""Of a job with fewer steps only the windows tell."""

MOSTLY_PREDICTS_PERCENT = 50.0
"""Of the time, from which calls of ``predict`` are what a job does, wherever they are made."""


def find_mostly_predicts(results: Results) -> float | None:
    """Return what many short calls of ``predict`` take of the time, percent, where that is most of it; None where it is less."""
    job = results.job_steps
    if isinstance(job, Unavailable) or job.predicts is None or not job.predicts.matter:
        return None
    percent = min(100.0, job.predicts.percent)
    return percent if percent >= MOSTLY_PREDICTS_PERCENT else None


def find_unseen_percent(results: Results) -> dict[GapCause, float] | None:
    """Return what breaks between steps that no window saw take of the mean of all steps, percent by cause; None where that is little.

    These are setting up and tearing down iterators, checkpoints, and Python, which stands for what else lies between epochs. A device may
    work on during any, so no more counts than what all steps take beyond the recorded ones; without one, the first counts as the job timed it.
    """
    job, breakdown = results.job_steps, results.step_breakdown
    recorded_ns = _recorded_ns(results)
    if recorded_ns is None or isinstance(job, Unavailable) or job.count < FEWEST_STEPS:
        return None
    seen, seen_saving, waits_ns = 0.0, 0.0, 0.0
    if not isinstance(breakdown, Unavailable) and breakdown.total_ns:
        plain = like_all_steps(results, breakdown)
        seen, seen_saving = (
            part_ns / max(1, plain.total_ns) for part_ns in (breakdown.iterator_end_ns, breakdown.checkpoint_ns)
        )
        recorded_wait_ns = recorded_ns * breakdown.input_wait_ns / max(1, plain.total_ns)
        waits_ns = max(0.0, (job.wait_total_ns or 0) / job.count - recorded_wait_ns)  # at the beginnings of epochs
    ending = find_iterator_percent(results, job) / 100.0
    saved_ns = 0 if isinstance(results.checkpoints, Unavailable) else results.checkpoints.total_ns
    saving = max(0.0, saved_ns / job.total_ns - seen_saving)
    breaking = max(0.0, job.break_total_ns / job.total_ns - ending)
    most = max(0.0, job.mean_ns - recorded_ns - waits_ns) / job.mean_ns
    works_on = isinstance(breakdown, Unavailable) or has_device_work(breakdown)
    if not works_on:
        saving = min(saving, max(0.0, most - max(0.0, ending - seen)))
        breaking = min(breaking, max(0.0, most - max(0.0, ending - seen) - saving))
    beyond_seen = max(0.0, ending - seen * (1.0 - breaking - saving))
    ending = beyond_seen / max(1e-9, 1.0 - seen)  # with what was seen that makes all of them
    if works_on:
        part = min(1.0, most / max(1e-9, ending + saving + breaking))
        ending, saving, breaking = part * ending, part * saving, part * breaking
    unseen = {GapCause.ITERATOR_END: ending, GapCause.CHECKPOINT: saving, GapCause.PYTHON: breaking}
    found = {cause: 100.0 * share for cause, share in unseen.items()}
    return found if sum(found.values()) >= ENDS_PERCENT else None


def find_iterator_percent(results: Results, job: JobSteps) -> float:
    """Return what setting up and tearing down iterators between epochs takes of all steps, percent."""
    known = [each for each in (results.iterator_starts, results.iterator_ends) if not isinstance(each, Unavailable)]
    return 100.0 * sum(each.total_ns for each in known) / job.total_ns


def _recorded_ns(results: Results) -> float | None:
    """Return the mean of the recorded steps without what recording adds to them; None where there are none."""
    steps, breakdown = results.steps, results.step_breakdown
    if isinstance(steps, Unavailable):
        return None
    mean_ns = float(steps.training_step_ns.mean())
    if isinstance(breakdown, Unavailable) or not breakdown.total_ns:
        return mean_ns
    return mean_ns * like_all_steps(results, breakdown).total_ns / breakdown.total_ns
