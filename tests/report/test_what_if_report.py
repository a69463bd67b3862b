"""What is said of predicted changes of a script."""

import pytest

from pipeline_lab.advice.script.script_model import ScriptPrediction
from pipeline_lab.report.subjects.what_if_report import report_script_changes
from tests.support.scripts import script


@pytest.mark.parametrize(
    ("percent", "words"),
    [(25.0, "25 % less (20 to 30 %)."), (-25.0, "25 % more (20 to 30 %)."), (-3.0, "3 % more (-2 to 8 %).")],
)
def test_bounds_of_a_prediction_go_with_its_word(percent: float, words: str) -> None:
    found = ScriptPrediction(1e6, (), percent, percent - 5.0, percent + 5.0, percent)
    (sentence,) = report_script_changes(script(), (), found, ()).answer.sentences
    assert sentence.endswith(words)
