"""The step and the pipeline of a script, timed alone once its training is over."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow
TASKS = "tests.worker.recipe.alone_tasks"


def test_a_step_that_does_more_than_compute_is_not_run(ask_tensorflow: Callable[..., Any]) -> None:
    found = ask_tensorflow(f"{TASKS}:time_fit_alone", prints=True)
    assert found["notes"] == [
        "The step alone was not timed: its function does more than compute (PrintV2), so it cannot be run without training further."
    ]
    assert found["is_unchanged"]


@pytest.mark.parametrize("steps_per_execution", [1, 3])
def test_the_step_of_any_model_runs_alone_and_leaves_the_model_as_it_was(
    ask_tensorflow: Callable[..., Any], steps_per_execution: int
) -> None:
    found = ask_tensorflow(f"{TASKS}:time_fit_alone", steps_per_execution=steps_per_execution)
    assert found["notes"] == []
    ((step_ns, steps, batch_ns, batches),) = found["times"]
    assert step_ns > 0
    assert steps >= 5 * steps_per_execution
    assert steps % steps_per_execution == 0
    assert found["of_calls"] == [steps_per_execution == 1]
    assert batch_ns > 0
    assert batches % 6 == 0, "whole passes"
    assert found["is_unchanged"], "weights, the optimizer's state and seeds"


def test_a_step_without_a_function_is_not_run(ask_tensorflow: Callable[..., Any]) -> None:
    found = ask_tensorflow(f"{TASKS}:time_fit_alone", run_eagerly=True)
    assert found["notes"] == [
        "The step alone was not timed: it calls no tf.function, so it cannot be run without training further."
    ]
    ((step_ns, _, batch_ns, _),) = found["times"]
    assert step_ns is None
    assert batch_ns > 0, "the pipeline alone is timed all the same"
    assert found["is_unchanged"]


def test_the_step_of_a_loop_runs_alone(ask_tensorflow: Callable[..., Any]) -> None:
    found = ask_tensorflow(f"{TASKS}:time_loop_alone")
    assert found["notes"] == []
    ((step_ns, steps, _, _),) = found["times"]
    assert step_ns > 0
    assert steps >= 5
    assert found["of_calls"] == [False]
    assert found["is_unchanged"]


@pytest.mark.parametrize(
    "loop",
    [
        "in Python",
        "in a function",
        "in a function that closes over it",
        "in a function for both",
        "in a function for both, by default",
        "on replicas",
    ],
)
def test_a_loop_trains_on_what_gradients_are_taken_for_however_often_another_dataset_is_read(
    ask_tensorflow: Callable[..., Any], loop: str
) -> None:
    assert "take" in ask_tensorflow(f"{TASKS}:find_trained_in_loop", loop=loop)


def test_a_large_model_that_the_script_drops_is_kept_only_where_that_is_asked_for(
    ask_tensorflow: Callable[..., Any],
) -> None:
    known = ask_tensorflow(f"{TASKS}:forget_fits")
    assert len(known) == 8
    assert [case for case, is_kept in known.items() if not is_kept] == ["gone, large, False"]


def test_the_padding_of_batches_is_counted_where_it_is_known_to_be_padding(
    ask_tensorflow: Callable[..., Any], tmp_path: Path
) -> None:
    """Rows of 3 and 1, then of 4 and 2: a zero inside a row is none, nor is one at its beginning."""
    assert ask_tensorflow(f"{TASKS}:note_padding", folder=str(tmp_path)) == {
        "without anything in it": [[2, 0, 0]],
        "padded": [[2, 6, 2], [2, 8, 2]],
        "padded, then mapped": [[2, 6, 2], [2, 8, 2]],
        "by length": [[2, 8, 1], [2, 4, 1]],
        "to a length": [],
        "with another value": [],
        "of one length": [],
    }


def test_what_may_wait_for_ever_is_not_read_again_unasked(ask_tensorflow: Callable[..., Any]) -> None:
    assert ask_tensorflow(f"{TASKS}:name_fits_to_time") == {
        "arrays": True,
        "a dataset": True,
        "Python in a map": True,
        "a generator": False,
        "a dataset of a generator": False,
        "a PyDataset": True,
        "a PyDataset with workers": False,
        "a dataset for replicas": False,
    }
