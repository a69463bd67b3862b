"""What to try next for each verdict in words: for logs, whose options nobody knows, and for what no option cures."""

from pipeline_lab.analysis.causes import Cure, GapCause, InputCause, VerdictClass
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.verdict.input_causes import GENERATOR
from pipeline_lab.analysis.verdict.verdict import LEAST_GAIN_PERCENT, NO_GAIN, Suggestion
from pipeline_lab.errors import Unavailable

TOO_SMALL = Unavailable("The gain is smaller than the prediction's own error.")


def find_cures(
    kind: VerdictClass,
    cause: str | None,
    stage: str | None,
    lost_percent: float,
    calibration: Calibration | Unavailable,
    overlap_percent: float | None = None,
) -> tuple[Suggestion, ...]:
    """Return what to try, the most promising first.

    Args:
        kind: The verdict's class.
        cause: Its cause, if known.
        stage: The blamed stage's iterator, if known.
        lost_percent: Share of the step that the class stands for; what a perfect cure would gain.
        calibration: Step and pipeline alone, if they were timed.
        overlap_percent: Share of the step that working ahead would save at best; None where a stage does so already, or
            nobody knows.
    """
    if kind is VerdictClass.INPUT_BOUND:
        return _for_input(cause, stage, calibration, overlap_percent)
    cure = GapCause(cause).cure if kind is VerdictClass.IDLE_OTHER and cause else kind.cure
    if cure is None:
        return ()
    return (Suggestion(cure.change, cure.why, _gain(lost_percent) if cure.gains_all else NO_GAIN),)


def _for_input(
    cause: str | None, stage: str | None, calibration: Calibration | Unavailable, overlap_percent: float | None
) -> tuple[Suggestion, ...]:
    overlap = () if overlap_percent is None or overlap_percent < LEAST_GAIN_PERCENT else (_overlap(overlap_percent),)
    slow = InputCause(cause) if cause and cause != InputCause.NO_OVERLAP and stage is not None else None
    if slow is not None:
        cure = _WAITING_GENERATOR if slow is InputCause.SOURCE and stage == GENERATOR else slow.cure
        return (Suggestion(cure.change, cure.why.format(stage=stage), _gain_to(calibration)), *overlap)
    faster = VerdictClass.INPUT_BOUND.cure
    assert faster is not None
    advice = Suggestion(faster.change, faster.why, _gain_to(calibration))
    return (*overlap, advice) if cause == InputCause.NO_OVERLAP else (advice, *overlap)


def _overlap(percent: float) -> Suggestion:
    cure = InputCause.NO_OVERLAP.cure
    return Suggestion(cure.change, cure.why, _gain(percent))


def _gain_to(calibration: Calibration | Unavailable) -> float | Unavailable:
    """Return the most that input can gain: down to the step on a held batch."""
    return NO_GAIN if isinstance(calibration, Unavailable) else _gain(100.0 - calibration.utilisation_percent)


def _gain(percent: float) -> float | Unavailable:
    """Return a gain that is worth naming, rounded."""
    return round(percent, 1) if percent >= LEAST_GAIN_PERCENT else TOO_SMALL


_WAITING_GENERATOR = Cure(
    "Let more processes or threads make the examples behind the generator, let it yield whole batches, or interleave several "
    "generators with num_parallel_calls.",
    "The step waits for the Python generator, which itself waits for something else.",
)
