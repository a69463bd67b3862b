import pytest

from pipeline_lab.statistics.outcome import GateAnswer, Outcome, answer_gate, is_settled, judge_ratio
from pipeline_lab.statistics.sequential import SequentialResult


def _interval(low: float, high: float) -> SequentialResult:
    return SequentialResult(pairs=30, ratio=(low * high) ** 0.5, low=low, high=high, p_value=0.5, alpha=0.05)


@pytest.mark.parametrize(
    ("low", "high", "outcome", "settled"),
    [
        (0.80, 0.90, Outcome.FASTER, True),
        (0.90, 0.99, Outcome.FASTER, False),
        (1.01, 1.20, Outcome.SLOWER, False),
        (1.10, 1.20, Outcome.SLOWER, True),
        (0.98, 1.02, Outcome.EQUIVALENT, True),
        (1.01, 1.02, Outcome.EQUIVALENT, True),
        (0.90, 1.10, Outcome.UNDECIDED, False),
        (0.0, float("inf"), Outcome.UNDECIDED, False),
    ],
)
def test_an_interval_is_worded_by_what_it_excludes(low: float, high: float, outcome: Outcome, settled: bool) -> None:
    assert judge_ratio(_interval(low, high), margin=0.03) is outcome
    assert is_settled(_interval(low, high), margin=0.03) is settled


@pytest.mark.parametrize(
    ("low", "high", "answer"),
    [
        (1.06, 1.2, GateAnswer.CROSSED),
        (0.9, 1.04, GateAnswer.PASSED),
        (1.01, 1.04, GateAnswer.PASSED),
        (1.0, 1.1, GateAnswer.UNDECIDED),
    ],
)
def test_a_gate_speaks_only_when_the_whole_interval_does(low: float, high: float, answer: GateAnswer) -> None:
    assert answer_gate(_interval(low, high), limit=0.05) is answer
