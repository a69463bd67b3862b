"""Scripts that predict a batch at a time: their calls are made both ways, and only those that return the same are exchanged."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline_lab.analysis.steps.job_steps import Predicts
from pipeline_lab.errors import RunFailedError
from pipeline_lab.tuning.script.fix import CallTimes, Fix
from pipeline_lab.tuning.script.predict_fix import fix_predicts
from pipeline_lab.tuning.script.proving import UNLIMITED
from pipeline_lab.tuning.script.sample_process import SampleProcess, Script

pytestmark = pytest.mark.tensorflow
MODEL = """\
import keras, numpy as np
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
rows = np.arange(48, dtype="float32").reshape(12, 4)
"""
LOOP = """\
for step in range(12):
    found = model.predict(rows[:2], verbose=0)
"""
COUNTING = """\
import keras, numpy as np, tensorflow as tf
class Counting(keras.layers.Layer):
    def build(self, shape):
        self.calls = self.add_weight(shape=(), initializer="zeros", trainable=False)
    def call(self, given):
        self.calls.assign_add(1.0)
        return given + self.calls
model = keras.Sequential([keras.Input((4,)), Counting()])
rows = np.arange(48, dtype="float32").reshape(12, 4)
"""


@pytest.fixture(name="fix")
def _fix(ask_tensorflow: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Fix]:
    def ask(_self: SampleProcess, request: dict[str, Any]) -> Any:
        return ask_tensorflow("tests.worker.recipe.predict_tasks:run_predicts", **request)

    monkeypatch.setattr(SampleProcess, "ask", ask)
    script = tmp_path / "train.py"

    def run(source: str, call: str = "model.predict at train.py:5") -> Fix:
        script.write_text(source)
        predicts = Predicts(call, 12, 900, 1000)
        return fix_predicts(Script(str(script)), predicts, {str(script): source}, UNLIMITED)

    return run


def test_calls_that_return_the_same_are_exchanged_and_their_gain_is_measured(fix: Callable[..., Fix]) -> None:
    found = fix(MODEL + LOOP)
    assert [line for line in found.diff().splitlines() if line[:1] in "+-"][2:] == [
        "-    found = model.predict(rows[:2], verbose=0)",
        "+    found = model.predict_on_batch(rows[:2])",
    ]
    assert found.proof is not None
    assert "bit for bit" in found.proof.sentence
    assert found.proof.elements == (12,)
    assert isinstance(found.gain, CallTimes)
    assert found.is_faster
    assert found.gain.share_percent == 90.0


def test_a_script_may_end_with_any_exit_code(fix: Callable[..., Fix]) -> None:
    assert fix(f"{MODEL}{LOOP}raise SystemExit(3)\n").changes


@pytest.mark.parametrize(
    ("source", "call", "reason"),
    [
        (COUNTING + LOOP, "model.predict at train.py:11", "returns different arrays"),
        (
            MODEL + LOOP.replace("[:2]", "[:2] if step else np.tile(rows, (9, 1))"),
            "model.predict at train.py:5",
            "more than one batch",
        ),
        (MODEL + "found = model.predict(rows, verbose=0)\n", "model.predict at train.py:4", "too few times"),
        (
            MODEL
            + LOOP.replace("rows[:2]", "rows[:2] if step % 3 else rows[:0]").replace("    found", "    try: found")
            + "    except Exception: pass\n",
            "model.predict at train.py:5",
            "fails there",
        ),
        (
            MODEL + "ask = model.predict\n" + LOOP.replace("model.predict", "ask"),
            "ask at train.py:6",
            "not written as model.predict",
        ),
    ],
)
def test_a_call_stays_where_the_script_shows_that_it_must(
    fix: Callable[..., Fix], source: str, call: str, reason: str
) -> None:
    found = fix(source, call)
    assert found.changes == ()
    assert found.edited is None
    assert "no call of predict" in found.note
    assert [reason in each.reason for each in found.left] == [True]


def test_a_script_that_fails_says_so(fix: Callable[..., Fix]) -> None:
    with pytest.raises(RunFailedError, match=r"The script fails: .*no data"):
        fix('raise ValueError("no data")\n')
