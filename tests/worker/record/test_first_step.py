from collections.abc import Callable
from typing import Any


def test_keras_builds_in_the_first_call_of_its_training_function(ask_tensorflow: Callable[..., Any]) -> None:
    told = ask_tensorflow("tests.capture.recording_tasks:tell_when_keras_builds")
    assert told == [True, False, True, False], "in two calls, in one that finds no batch, and after all of them"
