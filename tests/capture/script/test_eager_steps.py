"""Which functions of a script take gradients op by op."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline_lab.capture.script.eager_steps import EagerSteps

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
