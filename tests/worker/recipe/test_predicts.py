"""Scripts that predict a batch at a time: their calls are made both ways, and only those that return the same are exchanged."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline_lab.analysis.steps.job_steps import Predicts
from pipeline_lab.capture.script_sample.compared_predicts import find_overriding
from pipeline_lab.errors import RunFailedError
from pipeline_lab.runs.run_events import PredictEvent
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

    def run(source: str, *calls: str) -> Fix:
        """Fix a script whose calls took 900 of 1000 ns, each line as much as the others; by default the line of LOOP."""
        script.write_text(source)
        calls = calls or ("model.predict at train.py:5",)
        predicts = Predicts(tuple(PredictEvent(call, 12, 900 // len(calls), 1000) for call in calls))
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


def test_what_another_line_takes_is_not_gained(fix: Callable[..., Fix]) -> None:
    source = MODEL + LOOP + "    other = model.predict(rows[:2], 32, 0, 1)\n"
    found = fix(source, "model.predict at train.py:5", "model.predict at train.py:6")
    assert isinstance(found.gain, CallTimes)
    assert found.gain.share_percent == 45.0
    assert [("train.py:6" in each.change.words, "more arguments" in each.reason) for each in found.left] == [
        (True, True)
    ]


def test_a_line_that_is_not_reached_is_listed(fix: Callable[..., Fix]) -> None:
    found = fix(MODEL + LOOP, "model.predict at train.py:5", "model.predict at train.py:90")
    assert [("train.py:90" in each.change.words, "too few times" in each.reason) for each in found.left] == [
        (True, True)
    ]


@pytest.mark.parametrize(
    ("handled", "reason"),
    [("", "The changed script fails: "), ("    except Exception: pass\n", "makes 0 of these 12 calls")],
)
def test_what_the_changed_script_does_not_do_is_not_proposed(
    fix: Callable[..., Fix], handled: str, reason: str
) -> None:
    """Its model hides the method, as one behind a wrapper of the script's own does."""
    hidden = MODEL + "class Net:\n    def __init__(self): self.predict = model.predict\nnet = Net()\n"
    loop = "for step in range(12):\n    {try_}net.predict(rows[:2], verbose=0)\n"
    source = hidden + loop.format(try_="try: " if handled else "") + handled
    found = fix(source, "net.predict at train.py:8")
    assert found.changes == ()
    assert [reason in each.reason for each in found.left] == [True]


def test_threads_that_predict_at_once_are_compared_each_by_itself(fix: Callable[..., Fix]) -> None:
    at_once = (
        MODEL
        + "from concurrent.futures import ThreadPoolExecutor\ndef ask(row):\n"
        + (
            "    return model.predict(rows[row:row + 1], verbose=0)\n"
            "with ThreadPoolExecutor(2) as pool:\n    found = list(pool.map(ask, range(12)))\n"
        )
    )
    assert fix(at_once, "model.predict at train.py:6").changes


def test_a_script_that_waits_for_the_thread_that_predicts_is_left(fix: Callable[..., Fix]) -> None:
    waits = (
        MODEL
        + "import queue, threading\nfound = queue.Queue()\ndef ask():\n"
        + "    while True: found.put(model.predict(rows[:2], verbose=0))\n"
        + "threading.Thread(target=ask, daemon=True).start()\nwhile True: found.get()\n"
    )
    assert fix(waits, "model.predict at train.py:7").changes


def test_a_class_of_the_script_with_a_predict_of_its_own_is_found() -> None:
    kerass = type("Trainer", (), {"predict": None, "__module__": "keras.src.trainer"})
    model = type("Model", (kerass,), {"__module__": "keras.src.model"})
    assert find_overriding("predict", model()) is None
    own = type("Clipped", (model,), {"predict": None, "__module__": "train"})
    assert find_overriding("predict", model()) == "Clipped"
    assert find_overriding("predict", own()) == "Clipped"


def test_a_script_that_fails_says_so(fix: Callable[..., Fix]) -> None:
    with pytest.raises(RunFailedError, match=r"The script fails: .*no data"):
        fix('raise ValueError("no data")\n')
