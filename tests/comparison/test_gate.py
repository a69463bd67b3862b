import pytest

from pipeline_lab.comparison.gate import decide_gate, parse_percent
from pipeline_lab.comparison.recorded_runs import compare_runs
from pipeline_lab.errors import OptionsError
from pipeline_lab.statistics.outcome import GateAnswer
from tests.support import results
from tests.support.recorded import recorded

BASELINE, SLOWER, FASTER = recorded(), recorded(name="slower", factor=1.2), recorded("optimised", 0.6)


@pytest.mark.parametrize(("text", "percent"), [("5", 5), ("5%", 5), (" 2.5 % ", 2.5), ("0", 0)])
def test_limits_are_read_as_users_write_them(text: str, percent: float) -> None:
    assert parse_percent(text) == percent


@pytest.mark.parametrize("text", ["", "five", "-5", "5 %%", "1e9", "nan"])
def test_what_is_no_limit_is_one_sentence(text: str) -> None:
    with pytest.raises(OptionsError, match="is not a limit; write a percentage"):
        parse_percent(text)


def test_recorded_apart_never_crosses_without_leave() -> None:
    comparison = compare_runs(BASELINE, SLOWER)
    gate = decide_gate(comparison, 5, allow_drift=False)
    assert gate.answer is GateAnswer.UNDECIDED
    assert "drift may be the cause: slower" in gate.sentence
    assert decide_gate(comparison, 5, allow_drift=True).answer is GateAnswer.CROSSED


def test_within_the_limit_passes() -> None:
    assert decide_gate(compare_runs(BASELINE, FASTER), 5, allow_drift=False).answer is GateAnswer.PASSED
    assert decide_gate(compare_runs(BASELINE, SLOWER), 30, allow_drift=True).answer is GateAnswer.PASSED


def test_the_worst_candidate_decides_and_is_named() -> None:
    gate = decide_gate(compare_runs(BASELINE, FASTER, SLOWER), 5, allow_drift=True)
    assert gate.answer is GateAnswer.CROSSED
    assert gate.sentence == "Slower than baseline by more than 5 %: slower."


def test_what_cannot_be_compared_is_undecided() -> None:
    bare = recorded("optimised", diagnosis=results.bare_diagnosis())
    gate = decide_gate(compare_runs(BASELINE, bare), 5, allow_drift=True)
    assert gate.answer is GateAnswer.UNDECIDED
    assert gate.to_json() == {"limit_percent": 5, "answer": "undecided", "sentence": gate.sentence}
