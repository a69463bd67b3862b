"""The question of continuous integration: is any candidate slower than the baseline by more than a limit?"""

import re
from collections.abc import Iterable
from typing import Any, assert_never

from pipeline_lab.comparison.recorded_runs import Comparison
from pipeline_lab.comparison.step_time_ratio import StepTimeRatio
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import OptionsError, Unavailable
from pipeline_lab.statistics.outcome import GateAnswer, answer_gate


@dataclass(frozen=True)
class Gate:
    """The answer for a comparison.

    Attributes:
        limit_percent: How much longer than the baseline's a step may take.
        answer: ``crossed`` if any candidate crossed the limit, else ``undecided`` if any is, else ``passed``.
        sentence: The answer for people, with what to do.
    """

    limit_percent: float
    answer: GateAnswer
    sentence: str

    def to_json(self) -> dict[str, Any]:
        return {"limit_percent": self.limit_percent, "answer": self.answer.value, "sentence": self.sentence}


def parse_percent(text: str) -> float:
    """Read a limit as users write it: ``5`` or ``5%``.

    Raises:
        OptionsError: The text is not a percentage of at least 0.
    """
    match = re.fullmatch(r"\s*(\d{1,6}(?:\.\d{1,6})?)\s*%?\s*", text)
    if not match:
        raise OptionsError(f"{text[:40]!r} is not a limit; write a percentage such as 5 or 5%.")
    return float(match[1])


def decide_gate(comparison: Comparison, limit_percent: float, *, allow_drift: bool) -> Gate:
    """Answer the gate for runs that were recorded separately.

    Drift of the machine can make an equal pipeline look slower, so that such runs cross a limit only where the caller
    allows it; without, what looks crossed stays undecided.
    """
    answers = [_answer(ratio, limit_percent / 100) for ratio in comparison.step_time]
    answer = _worst(answers)
    at_fault = ", ".join(run.name for run, each in zip(comparison.candidates, answers, strict=True) if each is answer)
    limit = f"{limit_percent:g} %"
    match answer:
        case GateAnswer.PASSED:
            sentence = f"No candidate is slower than {comparison.baseline.name} by more than {limit}."
        case GateAnswer.UNDECIDED:
            sentence = f"Whether {at_fault} is slower by more than {limit} cannot be determined; record more steps, or race them."
        case GateAnswer.CROSSED if allow_drift:
            sentence = f"Slower than {comparison.baseline.name} by more than {limit}: {at_fault}."
        case GateAnswer.CROSSED:
            answer = GateAnswer.UNDECIDED
            sentence = (
                f"Slower by more than {limit}, but recorded separately, so that drift may be the cause: {at_fault}; "
                "race them, or accept drift with --allow-drift."
            )
        case _:
            assert_never(answer)
    return Gate(limit_percent, answer, sentence)


def _answer(ratio: StepTimeRatio | Unavailable, limit: float) -> GateAnswer:
    return GateAnswer.UNDECIDED if isinstance(ratio, Unavailable) else answer_gate(ratio, limit)


def _worst(answers: Iterable[GateAnswer]) -> GateAnswer:
    order = (GateAnswer.PASSED, GateAnswer.UNDECIDED, GateAnswer.CROSSED)
    return max(answers, key=order.index)
