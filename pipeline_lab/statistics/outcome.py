"""From an interval to a word, and to "stop here". Undecided is an outcome like any other."""

from enum import StrEnum
from typing import Protocol


class RatioInterval(Protocol):
    """Candidate over baseline, such as a race's result."""

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...


class Outcome(StrEnum):
    """What a race says about a candidate."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    """If there is a difference, it is smaller than the margin that matters."""
    UNDECIDED = "undecided"


class GateAnswer(StrEnum):
    """Whether a candidate is slower by more than a limit."""

    PASSED = "passed"
    CROSSED = "crossed"
    UNDECIDED = "undecided"


def judge_ratio(result: RatioInterval, margin: float) -> Outcome:
    """Word an interval.

    Args:
        result: Candidate over baseline.
        margin: Smallest relative difference that matters, such as 0.03.
    """
    if is_within(result, margin):
        return Outcome.EQUIVALENT
    if result.high < 1:
        return Outcome.FASTER
    if result.low > 1:
        return Outcome.SLOWER
    return Outcome.UNDECIDED


def is_settled(result: RatioInterval, margin: float) -> bool:
    """Say whether more pairs cannot be expected to change the word: beyond the margin, or within it."""
    return result.high < 1 / (1 + margin) or result.low > 1 + margin or is_within(result, margin)


def is_within(result: RatioInterval, margin: float) -> bool:
    return result.low >= 1 / (1 + margin) and result.high <= 1 + margin


def answer_gate(result: RatioInterval, limit: float) -> GateAnswer:
    """Say whether the candidate is slower by more than the limit, such as 0.05."""
    if result.low > 1 + limit:
        return GateAnswer.CROSSED
    return GateAnswer.PASSED if result.high <= 1 + limit else GateAnswer.UNDECIDED
