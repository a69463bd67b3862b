"""What mattered: how much of the differences an option explains, by hand."""

from pathlib import Path

import numpy as np
import pytest

from pipeline_lab.comparison.differences import Difference
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning import importance
from pipeline_lab.tuning.importance import OptionEffect, _effect
from pipeline_lab.tuning.search_result import read_tuning
from tests.support.worlds import make_search

LOGS = np.array([0.0, 0.1, 1.0, 1.1])
"""Of four configurations, the fastest first; the squares of their distances from the mean add up to 1.01."""


@pytest.mark.parametrize(
    ("values", "share"),
    [
        (("a", "a", "b", "b"), 1 - 0.01 / 2 * 3 / 1.01),  # 0.01 is left within the two values
        (("a", "b", "a", "b"), 0.0),  # 1 of 1.01 is left: chance explains more
    ],
)
def test_what_an_option_explains_is_corrected_for_the_number_of_its_values(values: tuple[str, ...], share: float):
    found = _effect([Difference("prefetch", values)], LOGS, 1.01)
    assert found.share == pytest.approx(share)
    assert found.best == values[0]


def test_options_that_changed_together_are_one_effect():
    found = _effect(
        [Difference("prefetch", ("1", "1", "2", "2")), Difference("calls", ("4", "4", None, None))], LOGS, 1.01
    )
    assert found.paths == ("prefetch", "calls")
    assert [value for value, _ in found.values] == ["1, 4", "2, –"]


def test_nothing_matters_that_chance_would_explain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    found = read_tuning(make_search(RunStore(tmp_path)))
    monkeypatch.setattr(importance, "_effect", lambda *_: OptionEffect(("prefetch",), 0.0, (("1", 1.0),), "1", 4))
    assert isinstance(importance.find_effects(found), Unavailable)
