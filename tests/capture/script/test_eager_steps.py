"""Which functions of a script take gradients op by op."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline_lab.capture.script import eager_steps
from pipeline_lab.capture.script.eager_steps import OF_KERAS, OF_TENSORFLOW, EagerSteps

SCRIPT = """\
class Agent:
    def learn(self):
        with self:
            take()
    def train(self, batches):
        for batch in batches:
            take()
    def __enter__(self): pass
    def __exit__(self, *_): pass
def pretrain():
    take()
    take()
"""


Script = tuple[EagerSteps, dict[str, Callable[..., Any]]]


@pytest.fixture(name="script")
def _script(tmp_path: Path) -> Script:
    """Run a script whose `take` takes gradients."""
    file, steps = tmp_path / "train.py", EagerSteps()
    file.write_text(SCRIPT)
    made = {"take": lambda: steps.note(sys._getframe(1))}
    exec(compile(SCRIPT, str(file), "exec"), made)
    return steps, made


def taken(steps: EagerSteps) -> list[tuple[str, int]]:
    return [(each.function, each.line) for each in steps.found]


def test_what_takes_them_in_a_call_for_each_step_is_named_by_its_definition(script: Script) -> None:
    steps, made = script
    agent = made["Agent"]()
    for _ in range(8):
        agent.learn()
    assert taken(steps) == [("Agent.learn", 2)]
    made["pretrain"]()
    assert taken(steps) == [("Agent.learn", 2)], "once is no step"
    made["pretrain"]()
    assert taken(steps) == [("Agent.learn", 2), ("pretrain", 10)], "at two lines"


def test_in_a_loop_over_batches_the_line_is_named(script: Script) -> None:
    steps, made = script
    made["Agent"]().train(range(3))
    assert taken(steps) == [("", 7)]


def test_without_a_source_the_line_is_named() -> None:
    steps = EagerSteps()
    exec(compile("def step(): take()\nstep()", "<typed>", "exec"), {"take": lambda: steps.note(sys._getframe(1))})
    assert taken(steps) == [("", 1)]


def test_without_gradients_there_is_none() -> None:
    assert EagerSteps().found == []


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Write the files of a script, which are all that is loaded."""

    def files(*texts: str) -> list[str]:
        paths = [tmp_path / f"{number}.py" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        monkeypatch.setattr(eager_steps, "users_files", lambda: list(map(str, paths)))
        return list(map(str, paths))

    return files


@pytest.mark.parametrize(
    ("switch", "text", "line"),
    [
        (OF_KERAS, "model.compile(\n    'adam',\n    run_eagerly = True)", 3),
        (OF_KERAS, "model.compile(run_eagerly=DEBUG)", 1),
        (OF_KERAS, "# never run_eagerly=True\nmodel.run_eagerly = True", 2),
        (OF_KERAS, "model.run_eagerly = True\nmodel.run_eagerly = False", 1),
        (
            OF_KERAS,
            "def check():\n    a.compile(run_eagerly=True)\nm.compile(run_eagerly=True)",
            0,
        ),  # nobody knows which
        (OF_TENSORFLOW, "tf.config.run_functions_eagerly(True)\ntf.config.run_functions_eagerly(False)", 1),
        (OF_TENSORFLOW, "from tensorflow.config import run_functions_eagerly\nrun_functions_eagerly(args.debug)", 2),
        (OF_TENSORFLOW, "model.compile(run_eagerly=True)", 0),
        (OF_TENSORFLOW, "tf.config.run_functions_eagerly(True", 0),
    ],
)
def test_a_switch_is_named_by_the_only_line_that_sets_it(
    write: Callable[..., list[str]], switch: str, text: str, line: int
) -> None:
    _, file = write("import tensorflow", text)
    steps = EagerSteps()
    steps.note_switch(switch)
    (found,) = steps.found
    assert (found.switch, found.file, found.line) == (switch, file if line else "", line)


def test_a_switch_that_a_few_steps_ran_under_is_not_to_blame(write: Callable[..., list[str]]) -> None:
    write()
    steps = EagerSteps()
    steps.note_switch(OF_TENSORFLOW)
    for _ in range(5):
        steps.note(sys._getframe())
    (found,) = steps.found
    assert found.switch == ""
    for _ in range(4):
        steps.note_switch(OF_TENSORFLOW)
    assert [each.switch for each in steps.found] == [OF_TENSORFLOW]
