"""The picture of a training step that a verdict speaks of: what it consists of on average, and which steps that is the mean of."""

from pipeline_lab.analysis.causes import StepPart
from pipeline_lab.analysis.results import LaterEpochs, Results
from pipeline_lab.analysis.steps.step_breakdown import StepBreakdown, count_training_steps, mean_parts_ns
from pipeline_lab.analysis.steps.stragglers import follow_last
from pipeline_lab.analysis.verdict.recording_effects import like_all_steps, name_left_out
from pipeline_lab.analysis.verdict.unseen_breaks import find_mostly_predicts, find_unseen_percent
from pipeline_lab.analysis.verdict.verdict import JudgedStep
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import format_count, format_duration

SAME = 0.02
"""Two means of a step that differ by no more than this share count as equal."""


def deciding_breakdown(results: Results) -> StepBreakdown | Unavailable:
    """Return the parts of the steps; of several hosts that wait for each other, those of the one that comes last each time."""
    breakdown = results.step_breakdown
    if isinstance(breakdown, Unavailable) or isinstance(results.hosts, Unavailable) or not breakdown.collective_ns:
        return breakdown
    return follow_last(breakdown)


def judged_parts_ns(results: Results) -> dict[StepPart, float] | Unavailable:
    """Return what a training step consists of on average, in the order of its parts; what takes nothing is left out.

    The parts are those of the recorded steps, without what recording adds and with the breaks between epochs that no window saw.
    Of several hosts that wait for each other they are the parts of the one that comes last each time, as in the verdict.
    """
    breakdown, hosts, steps = deciding_breakdown(results), results.hosts, results.steps
    if isinstance(breakdown, Unavailable):
        return breakdown
    if isinstance(hosts, Unavailable) or isinstance(steps, Unavailable) or breakdown is results.step_breakdown:
        parts = _with_unseen_breaks(mean_parts_ns(like_all_steps(results, breakdown), steps), results)
        return _with_predicts(parts, results)
    count, parts_ns = (
        hosts.common_steps * (steps.steps_per_marker or 1.0),
        like_all_steps(results, breakdown).parts_ns,
    )
    return {part: length / count for part in StepPart if (length := parts_ns[part.column])}


def _with_unseen_breaks(
    parts: dict[StepPart, float] | Unavailable, results: Results
) -> dict[StepPart, float] | Unavailable:
    unseen = _unseen_ns(results)
    if isinstance(parts, Unavailable) or unseen is None:
        return parts
    more = parts | {part: parts.get(part, 0.0) + length_ns for part, length_ns in unseen.items()}
    return {part: more[part] for part in StepPart if more.get(part)}


def _with_predicts(parts: dict[StepPart, float] | Unavailable, results: Results) -> dict[StepPart, float] | Unavailable:
    """Count calls of ``predict`` that take most of all steps as Python's, and divide what they leave as it was."""
    job, percent = results.job_steps, find_mostly_predicts(results)
    if isinstance(parts, Unavailable) or isinstance(job, Unavailable) or percent is None:
        return parts
    predicting_ns = percent / 100.0 * job.mean_ns
    left = (job.mean_ns - predicting_ns) / max(1.0, sum(parts.values()))
    more = {part: length * left for part, length in parts.items()}
    more[StepPart.PYTHON] = more.get(StepPart.PYTHON, 0.0) + predicting_ns
    return {part: more[part] for part in StepPart if more.get(part)}


def _unseen_ns(results: Results) -> dict[StepPart, float] | None:
    """Return what breaks between epochs that no window saw add to a step on average; None where that is little."""
    job, unseen = results.job_steps, find_unseen_percent(results)
    if isinstance(job, Unavailable) or unseen is None:
        return None
    return {part: unseen[part.cause] / 100.0 * job.mean_ns for part in StepPart if part.cause in unseen}


_UNSEEN = {
    StepPart.ITERATOR_END: "iterator setup and teardown between all steps",
    StepPart.CHECKPOINT: "checkpoints between all steps",
    StepPart.PYTHON: "time between all epochs",
}
"""What of all steps is added to the recorded ones, by the largest part of it."""


def name_parts_basis(results: Results, judged: JudgedStep | None, later: LaterEpochs | None = None) -> str:
    """Say which steps the parts are the mean of, and beside it how long those are that the verdict speaks of, if others.

    Args:
        results: Of all epochs.
        judged: What the verdict speaks of.
        later: The epochs that it speaks of, if not all.
    """
    breakdown, parts, hosts, steps = deciding_breakdown(results), judged_parts_ns(results), results.hosts, results.steps
    if isinstance(breakdown, Unavailable) or isinstance(parts, Unavailable):
        return ""
    left_out = name_left_out(results, breakdown)
    without = f" (without {left_out})" if left_out else ""
    if breakdown is not results.step_breakdown and not isinstance(hosts, Unavailable):
        said = f"Mean of {format_count(hosts.common_steps)} recorded steps{without}, each of the host that came last"
    else:
        count = round(count_training_steps(breakdown, steps))
        said = f"Mean of {format_count(count)} recorded steps" if count > 1 else "One recorded step"
        said += (" of the whole job" if later is not None else "") + without
        unseen = _unseen_ns(results) or {}
        if find_mostly_predicts(results) is not None and not isinstance(results.job_steps, Unavailable):
            steps_of_job = f"Mean of all {format_count(results.job_steps.count)} steps"
            return f"{steps_of_job}: calls of predict count as Python, and the rest is divided as in {format_count(count)} recorded steps."
        if any(unseen.values()):
            said += f" and of the {_UNSEEN[max(unseen, key=unseen.__getitem__)]}"
    job, length_ns = results.job_steps if later is None else later.job_steps, sum(parts.values())
    if judged is None or isinstance(job, Unavailable) or abs(judged.mean_ns - length_ns) <= SAME * length_ns:
        return f"{said}."
    steps_of_job = f"all {format_count(job.count)} steps of the job"
    if later is not None:
        steps_of_job = f"the {format_count(job.count)} steps that are judged"
    return f"{said}, {format_duration(length_ns)}; over {steps_of_job} it is {format_duration(judged.mean_ns)}."
