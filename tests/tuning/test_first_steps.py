"""The first steps of a training and of a changed one: what counts as the same."""

from pathlib import Path
from typing import Any

import pytest

from pipeline_lab.pipeline.first_steps import TrainedSteps
from pipeline_lab.pipeline.samples import Draws, Proof, ProofOutcome, ReadingPlace
from pipeline_lab.tuning.script.proof import Prover
from pipeline_lab.tuning.script.sample_process import SampleProcess, Script

EQUAL = Proof(ProofOutcome.EQUAL, "Equal.", (8,))


@pytest.mark.parametrize(
    ("logs", "difference"),
    [
        ({"loss": 2.0, "accuracy": 0.0}, ""),
        ({"loss": 2.0019, "accuracy": 0.0}, ""),
        ({"loss": 2.0021, "accuracy": 0.0}, "After 3 steps of training, loss is 2.0021; of the script as it is, 2."),
        ({"loss": 2.0, "accuracy": 0.125}, "After 3 steps of training, accuracy is 0.125; of the script as it is, 0."),
        ({"loss": float("nan"), "accuracy": 0.0}, "After 3 steps of training, loss is nan; of the script as it is, 2."),
        ({"loss": 2.0}, "After 3 steps of training, accuracy is not there; of the script as it is, 0."),
    ],
)
def test_what_keras_logs_may_differ_by_rounding(logs: dict[str, float], difference: str) -> None:
    assert TrainedSteps(3, {"loss": 2.0, "accuracy": 0.0}).find_difference(TrainedSteps(3, logs)) == difference


def _prove(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *answers: dict[str, Any]) -> tuple[Proof, list[Any]]:
    given, asked = list(answers), list[Any]()
    monkeypatch.setattr(SampleProcess, "ask", lambda _, request: asked.append(request) or given.pop(0))
    with Prover(Script(str(tmp_path / "train.py")), ReadingPlace("training", "train.py", 9), "run") as prover:
        return prover.prove_training({"train.py": "new"}, EQUAL, draws=Draws.IN_ORDER, line=11), asked


def test_a_changed_script_that_trains_alike_is_said_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found, asked = _prove(
        monkeypatch, tmp_path, {"count": 3, "logs": {"loss": 1.0}}, {"count": 3, "logs": {"loss": 1.0}}
    )
    assert found.outcome is ProofOutcome.EQUAL
    assert (
        found.sentence == "Equal. The changed script trains 3 steps, and Keras logs the same of them but for rounding."
    )
    assert [(each["texts"], each["reading"]["line"], each["draws"]) for each in asked] == [
        ({}, 9, "in order"),
        ({"train.py": "new"}, 11, "in order"),
    ]


@pytest.mark.parametrize(
    ("after", "outcome", "words"),
    [
        ({"count": 3, "logs": {"loss": 2.0}}, ProofOutcome.DIFFERENT, "After 3 steps of training, loss is 2; of the script as it is, 1."),
        ({"count": 2, "logs": {"loss": 1.0}}, ProofOutcome.FAILED, "The changed script trains 2 of 3 steps."),
        ({"error": "TypeError: no"}, ProofOutcome.FAILED, "The training fails: TypeError: no."),
    ],
)  # fmt: skip
def test_a_changed_script_that_does_not_is_not_proved(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, after: dict[str, Any], outcome: ProofOutcome, words: str
) -> None:
    found, _ = _prove(monkeypatch, tmp_path, {"count": 3, "logs": {"loss": 1.0}}, after)
    assert (found.outcome, found.sentence) == (outcome, words)


def test_no_steps_at_all_prove_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found, _ = _prove(monkeypatch, tmp_path, {"count": 0, "logs": {}}, {"count": 0, "logs": {}})
    assert found == Proof(ProofOutcome.FAILED, "The script as it is ends before a step of its training was seen.")
