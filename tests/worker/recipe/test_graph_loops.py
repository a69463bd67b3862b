"""Steps of loops inside of ``tf.function`` are timed by clocks in the graph, and the script computes what it did without."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from pipeline_lab.units import NS_PER_MS

pytestmark = pytest.mark.tensorflow
WAIT_NS, WORK_NS = 20 * NS_PER_MS, 30 * NS_PER_MS
"""What a batch and a step take at least; see :mod:`tests.worker.recipe.loop_tasks`."""


@pytest.fixture(name="found", scope="module")
def _found(ask_tensorflow: Callable[..., Any]) -> dict[str, Any]:
    found: dict[str, Any] = ask_tensorflow("tests.worker.recipe.loop_tasks:time_graph_loops")
    return found


def _passes(loop: dict[str, Any]) -> list[list[dict[str, Any]]]:
    numbers = dict.fromkeys(note["pass"] for note in loop["notes"])
    return [[note for note in loop["notes"] if note["pass"] == number] for number in numbers]


def test_a_loop_computes_the_same_with_clocks_in_it(found: dict[str, Any]) -> None:
    for name, loop in found.items():
        assert loop["after"] == loop["before"], name


def test_each_epoch_is_a_pass_of_its_own_with_its_end(found: dict[str, Any]) -> None:
    passes = _passes(found["epochs"])
    assert [[note["arrived"] is not None for note in each] for each in passes] == [
        [True] * 4 + [False],
        [True] * 2 + [False],
    ] * 2
    assert [{note["trains"] for note in each} for each in passes] == [{True}, {False}] * 2
    assert [[note["examples"] for note in each] for each in passes[:2]] == [[2, 2, 2, 1, None], [2, 1, None]]


def test_waits_and_steps_last_at_least_as_long_as_they_take(found: dict[str, Any]) -> None:
    for one in (each for each in _passes(found["epochs"]) if each[0]["trains"]):
        for note, following in itertools.pairwise(one):
            assert note["arrived"] - note["asked"] >= WAIT_NS
            assert following["asked"] - note["arrived"] >= WORK_NS


def test_a_loop_that_is_left_early_and_gets_its_dataset_from_the_caller_is_timed(found: dict[str, Any]) -> None:
    (one,) = _passes(found["given"])
    assert [note["examples"] for note in one] == [2, 2, 2, 1, None], "it takes the batch that it leaves at"
    assert one[-1]["arrived"] is None


def test_a_loop_on_several_devices_is_timed_once_for_all_of_them(found: dict[str, Any]) -> None:
    (one,) = _passes(found["distributed"])
    assert [note["examples"] for note in one] == [2, 2, 2, 1, None]
    assert {note["trains"] for note in one} == {True}


def test_a_saved_model_holds_no_clocks(ask_tensorflow: Callable[..., Any]) -> None:
    found = ask_tensorflow("tests.worker.recipe.loop_tasks:save_graph_loop")
    assert found == {"results": [10, 10], "told": [True, True], "ours": []}


def test_an_exported_keras_model_is_what_it_would_be(ask_tensorflow: Callable[..., Any]) -> None:
    found = ask_tensorflow("tests.worker.recipe.loop_tasks:export_after_fit")
    assert (found["steps"], found["ours"]) == (4, False)
    assert found["answers"][1] == found["answers"][0]


def test_a_model_whose_clocks_stay_is_saved_whole(ask_tensorflow: Callable[..., Any]) -> None:
    assert ask_tensorflow("tests.worker.recipe.loop_tasks:save_graph_that_cannot_be_stripped")


def test_one_thread_drops_what_loops_say_when_nobody_listens_any_more(ask_tensorflow: Callable[..., Any]) -> None:
    assert ask_tensorflow("tests.worker.recipe.loop_tasks:count_dropping_threads") == 1


def test_tracing_keeps_the_pass_that_another_thread_began_meanwhile(ask_tensorflow: Callable[..., Any]) -> None:
    assert ask_tensorflow("tests.worker.recipe.loop_tasks:take_gradients_beside_tracing") == [False, True]


def test_the_making_of_an_iterator_is_noted(ask_tensorflow: Callable[..., Any]) -> None:
    assert ask_tensorflow("tests.worker.recipe.loop_tasks:make_iterators") == [True, True]


def test_the_end_of_an_iterator_is_noted_where_it_takes_its_time(ask_tensorflow: Callable[..., Any]) -> None:
    (took_ms,) = ask_tensorflow("tests.worker.recipe.loop_tasks:give_up_an_iterator")
    assert took_ms >= 100


def test_a_step_whose_batch_the_script_makes_lasts_from_call_to_call(ask_tensorflow: Callable[..., Any]) -> None:
    found = ask_tensorflow("tests.worker.recipe.loop_tasks:train_on_own_batches")
    assert found["calls"] == ["step at loop_tasks"]
    assert found["examples"] == [4]
    assert not found["others train"]
    traced, first, second, third, after_evaluation, waited, after_dataset = found["waits"]
    assert traced == first == after_evaluation == after_dataset == 0, "something else was done"
    assert waited >= 1
    assert max(second, third) < waited


def test_predict_is_noted_where_it_is_called_with_a_batch_at_most(ask_tensorflow: Callable[..., Any]) -> None:
    found = ask_tensorflow("tests.worker.recipe.loop_tasks:predict_in_loop")
    assert found == ["model.predict at loop_tasks.py"] * 3


def test_a_step_op_by_op_on_batches_of_the_scripts_own_lasts_from_gradients_to_gradients(
    ask_tensorflow: Callable[..., Any],
) -> None:
    found = ask_tensorflow("tests.worker.recipe.loop_tasks:train_op_by_op")
    assert found["steps"] == [[1, True, None]] * 4, "the first may have been the last of the pass before it"
    assert found["apart"]
    assert found["loops"] == 1
    assert found["before"] == 0, "steps that take a batch of a dataset, and the one beyond its end"
    assert found["marked"] == [["gradients", number] for number in range(1, 5)]
    assert found["taken in"] == [["train_op_by_op.step", 0]], "at two lines of it"


def test_a_step_in_a_function_is_none_that_runs_op_by_op(ask_tensorflow: Callable[..., Any]) -> None:
    assert ask_tensorflow("tests.worker.recipe.loop_tasks:train_in_function") == []


def test_a_switch_that_lets_steps_run_op_by_op_is_noted_with_its_line(ask_tensorflow: Callable[..., Any]) -> None:
    assert ask_tensorflow("tests.worker.recipe.loop_tasks:train_with_switches") == [
        [["run_eagerly=True", 'model.compile(loss="mse", run_eagerly=True)']],
        [["tf.config.run_functions_eagerly(True)"] * 2],
        [],
        [],
    ]


def test_numbers_that_a_function_takes_as_tensors_are_not_kept(ask_tensorflow: Callable[..., Any]) -> None:
    assert ask_tensorflow("tests.worker.recipe.loop_tasks:count_keys_of_numbers") == [3, 1]
