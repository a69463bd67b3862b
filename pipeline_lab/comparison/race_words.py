"""What a race says, in words: the answer, and what speaks against a faster arm."""

import numpy as np

from pipeline_lab.comparison.gate import Gate
from pipeline_lab.comparison.race_arm import ArmResult
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.race_standing import Rounds
from pipeline_lab.statistics.effective_sample import difference_interval, estimate_mean
from pipeline_lab.statistics.outcome import GateAnswer, Outcome
from pipeline_lab.statistics.sequential import SequentialResult
from pipeline_lab.units import format_percent

WORSE_CONFIDENCE = 0.99
WORSE_SAMPLING = 0.05
"""A candidate whose total variation lies further above the baseline's than this samples its files worse."""
MIN_LOSSES = 20


def describe_answer(
    name: str, baseline: str, result: SequentialResult, outcome: Outcome, smallest_effect: float | None, per: str
) -> str:
    """Word the answer of one candidate for whom something is known; ``per`` is what times are compared for."""
    interval, change = _interval(result), _percent(result.ratio)
    takes = "an example takes it" if per == "example" else "its step takes"
    match outcome:
        case Outcome.FASTER:
            return f"{name} is faster than {baseline}: {takes} {change} less time ({interval})."
        case Outcome.SLOWER:
            return f"{name} is slower than {baseline}: {takes} {change} more time ({interval})."
        case Outcome.EQUIVALENT:
            return (
                f"{name} takes as long as {baseline}{_each(per)}: the difference is too small to matter ({interval})."
            )
        case _:
            found = "" if smallest_effect is None else f"; a difference of {_percent(smallest_effect)} would have shown"
            return f"{name} and {baseline} cannot be told apart{_each(per)} ({interval}){found}."


def describe_too_few(name: str, baseline: str, rounds: Rounds, kept: int) -> str:
    """Say why nothing is known about a candidate, and what to do.

    Args:
        name, baseline: Of the arms.
        rounds: The complete rounds.
        kept: How many of them count.
    """
    total = len(rounds.step_ns)
    if kept == total:
        return f"Too few rounds to say anything about {name} and {baseline}; let the race go on for longer."
    counted = f"Nothing can be said about {name} and {baseline}: {kept} of {total} rounds count"
    if rounds.throttled > total - kept - rounds.throttled:
        return f"{counted}, for the device slowed itself down because of heat or power; cool it, then race again."
    return (
        f"{counted}, for other programs disturbed the rest; race again on a quieter machine, "
        "or raise max_extra_load_percent."
    )


def describe_prediction(ratio: float | None) -> str:
    """Say what was predicted of a candidate before the race; nothing where nobody did."""
    if ratio is None:
        return ""
    return f"Predicted: {_percent(ratio)} {'less' if ratio < 1 else 'more'} time."


def find_warnings(baseline: ArmResult, candidate: ArmResult) -> tuple[str, ...]:
    """Say what got worse in a candidate while its time was looked at."""
    looks = (_worse_loss, _worse_sampling, _worse_views)
    return tuple(sentence for look in looks if (sentence := look(baseline, candidate)) is not None)


def answer_race_gate(limit_percent: float, baseline: str, answers: dict[str, GateAnswer], per: str) -> Gate:
    """Answer for continuous integration.

    Args:
        limit_percent: How much longer than the baseline a candidate may take.
        baseline: Name of the baseline.
        answers: Of each candidate, by its name.
        per: What the times are compared for, ``step`` or ``example``.
    """
    order = (GateAnswer.PASSED, GateAnswer.UNDECIDED, GateAnswer.CROSSED)
    answer = max(answers.values(), key=order.index)
    at_fault = ", ".join(name for name, each in answers.items() if each is answer)
    limit = f"{limit_percent:g} %{_each(per)}"
    sentences = {
        GateAnswer.PASSED: f"No candidate is slower than {baseline} by more than {limit}.",
        GateAnswer.CROSSED: f"Slower than {baseline} by more than {limit}: {at_fault}.",
        GateAnswer.UNDECIDED: f"Whether {at_fault} is slower by more than {limit} cannot be told; race more pairs.",
    }
    return Gate(limit_percent, answer, sentences[answer])


def _interval(result: SequentialResult) -> str:
    high = f"{result.high:.3f}" if np.isfinite(result.high) else "∞"
    return f"ratio {result.ratio:.3f}, {100 * (1 - result.alpha):g} % interval {result.low:.3f} to {high}"


def _each(per: str) -> str:
    return " per example" if per == "example" else ""


def _percent(ratio: float) -> str:
    return format_percent(100 * abs(ratio - 1))


def _worse_loss(baseline: ArmResult, candidate: ArmResult) -> str | None:
    if isinstance(baseline.loss, Unavailable):
        return None
    if not np.isfinite(candidate.losses).all():
        return f"{candidate.name} learns worse: its loss became no finite number, {baseline.name}'s is {baseline.loss:.3g}."
    if isinstance(candidate.loss, Unavailable):
        return None
    if min(baseline.losses.size, candidate.losses.size) < MIN_LOSSES:
        return None
    first, second = estimate_mean(baseline.losses), estimate_mean(candidate.losses)
    low, _ = difference_interval(first, second, WORSE_CONFIDENCE)
    if not low > 0:
        return None
    return (
        f"{candidate.name} learns worse: after as many steps its loss is {candidate.loss:.3g}, "
        f"{baseline.name}'s {baseline.loss:.3g}."
    )


def _worse_sampling(baseline: ArmResult, candidate: ArmResult) -> str | None:
    first, second = baseline.sampling, candidate.sampling
    if isinstance(first, Unavailable) or isinstance(second, Unavailable):
        return None
    if first.total_variation is None or second.total_variation is None:
        return None
    if second.total_variation - first.total_variation <= WORSE_SAMPLING:
        return None
    return (
        f"{candidate.name} samples its files less evenly: {format_percent(100 * second.total_variation)} of its examples "
        f"would have to come from other files, {format_percent(100 * first.total_variation)} of {baseline.name}'s."
    )


def _worse_views(baseline: ArmResult, candidate: ArmResult) -> str | None:
    if isinstance(baseline.sampling, Unavailable) or isinstance(candidate.sampling, Unavailable):
        return None
    first, second = baseline.sampling.same_source, candidate.sampling.same_source
    if second is None or not second.is_weak or (first is not None and first.is_weak):
        return None
    before = "" if first is None else f", {first.per_batch:.3g} of {baseline.name}'s"
    return (
        f"{candidate.name} puts views of one image together: {second.per_batch:.3g} of the {second.batch_size} examples of a "
        f"batch share their image with another one{before}."
    )
