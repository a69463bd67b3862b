"""Keras 2 (``tf_keras``, ``TF_USE_LEGACY_KERAS=1``) is watched as Keras 3 is."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow
TASKS = "tests.worker.recipe.keras_2_tasks"


@pytest.mark.parametrize(("steps_per_execution", "calls"), [(1, [1] * 5), (2, [2, 2, 1])])
def test_every_step_of_each_epoch_and_evaluation_is_noted_once(
    ask_tensorflow: Callable[..., Any], steps_per_execution: int, calls: list[int]
) -> None:
    found = ask_tensorflow(f"{TASKS}:note_keras_2", steps_per_execution=steps_per_execution)
    passes = [one for one in found["passes"] if one["role"] != "predict"]
    assert [one["role"] for one in passes] == ["fit", "evaluate", "fit", "evaluate", "evaluate"]
    assert [one["examples"] for one in passes] == [4] * 5
    assert [one["steps"] for one in passes] == [calls, passes[1]["steps"], calls, passes[1]["steps"], [1]]
    assert [sum(one["steps"]) for one in passes] == [5, 2, 5, 2, 1]
    assert [one["evaluations"] for one in passes] == [0, 1, 0, 1, 1]
    assert [one["gaps"] for one in passes if one["role"] == "fit"] == [1, 1]
    assert found["predicted"] == ["model.predict at keras_2_tasks.py"]


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_what_callbacks_evaluate_and_predict_is_noted_with_its_call(
    ask_tensorflow: Callable[..., Any], package: str
) -> None:
    found = ask_tensorflow(f"{TASKS}:note_callbacks", package=package)
    own, predicted, validation = found["evaluated"]
    assert own == ["evaluate", "self.model.evaluate", 3]
    assert predicted == ["predict", "self.model.predict", 5]
    assert validation == ["evaluate", "", 2], "fit's own"
    assert found["predicted"] == ["self.model.predict"], "of one batch"


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_an_evaluation_is_noted_once_and_only_that_of_keras_is_fits_own(
    ask_tensorflow: Callable[..., Any], package: str
) -> None:
    found = ask_tensorflow(f"{TASKS}:note_nested", package=package)
    assert found == [["evaluate", ""], ["evaluate", "evaluate at keras_2_tasks.py"]]


@pytest.mark.parametrize("steps_per_execution", [1, 3])
def test_its_step_runs_alone_and_leaves_the_model_as_it_was(
    ask_tensorflow: Callable[..., Any], steps_per_execution: int
) -> None:
    found = ask_tensorflow(f"{TASKS}:time_keras_2_alone", steps_per_execution=steps_per_execution)
    assert found["notes"] == []
    ((step_ns, steps, batch_ns, batches),) = found["times"]
    assert step_ns > 0
    assert steps >= 5 * steps_per_execution
    assert batch_ns > 0
    assert batches % 6 == 0, "whole passes"
    assert found["is_unchanged"], "weights and the optimizer's state"


def test_a_sequence_is_known_by_its_kind_and_not_read_again_where_workers_feed_it(
    ask_tensorflow: Callable[..., Any],
) -> None:
    found = ask_tensorflow(f"{TASKS}:read_sequences")
    assert found == {name: [name == "1", ["Sequence"]] for name in ("1", "2", "2 ended")}


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_a_loop_that_calls_the_models_own_function_reads_its_dataset(
    ask_tensorflow: Callable[..., Any], package: str
) -> None:
    found = ask_tensorflow(f"{TASKS}:note_own_loop", package=package)
    assert [call for _, call, _ in found[:2]] == ["", ""]
    assert found[0][2][-3:] == found[1][2] == ["Called"] * 3, "the first call may trace the function twice"
    assert not [names for _, _, names in found[2:] if "Called" in names], "test_on_batch makes no pass"
