"""Steps that run op by op, and steps that call a function; µs."""

import pytest

from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.steps import eager_ops, recorded_steps
from pipeline_lab.analysis.steps.eager_ops import EagerOps, count_eager_ops, merge_eager_ops
from tests.support.traces import Event, host, line, trace


def count(*events: Event, thread: str = "python") -> EagerOps:
    marks: list[Event] = [("train", 100 * step, 90, {"step_num": step, "_r": 1}) for step in range(4)]
    beside = (
        [line("python", *marks, *events)] if thread == "python" else [line("python", *marks), line(thread, *events)]
    )
    activity = Activity(trace(host(*beside)))
    return count_eager_ops(activity, recorded_steps.find_steps(activity))


def ops(step: int, number: int) -> list[Event]:
    return [("EagerLocalExecute: MatMul", 100 * step + 2 * at, 1) for at in range(number)]


def test_a_step_that_calls_its_ops_one_by_one_is_eager():
    found = count(*(event for step in range(4) for event in ops(step, 30)))
    assert (found.steps, found.ops, found.ops_ns, found.function_calls) == (4, 120, 120_000, 0)
    assert found.ops_per_step == 30.0
    assert found.is_eager


def test_a_step_that_calls_a_function_is_not_whatever_else_it_calls():
    calls: list[Event] = [("EagerLocalExecute: __inference_train_step_7", 100 * step + 70, 20) for step in range(4)]
    found = count(*calls, *(event for step in range(4) for event in ops(step, 30)))
    assert (found.function_calls, found.is_eager) == (4, False)


def test_ops_between_steps_and_on_the_pipelines_threads_are_not_the_steps():
    assert count(("EagerLocalExecute: MatMul", 500, 1)).ops == 0
    assert count(*ops(0, 30), thread="tf_data_private_threadpool/1").ops == 0


def test_merging_adds_up():
    one = count(*ops(0, 30))
    assert merge_eager_ops([one, one]) == EagerOps(8, 60, 60_000, 0)


def test_long_times_between_two_ops_are_told_apart_without_waits_for_input(monkeypatch: pytest.MonkeyPatch):
    """In each step ops lie 1 µs apart; then 70 µs pass before the last one, of which the third step waits 25 for input after 11."""
    monkeypatch.setattr(eager_ops, "BETWEEN_OPS_NS", 20_000)
    last: list[Event] = [("EagerLocalExecute: Mul", 100 * step + 89, 1) for step in range(4)]
    wait: list[Event] = [("IteratorGetNextOp::DoCompute", 230, 25)]
    found = count(*last, *wait, *(event for step in range(4) for event in ops(step, 10)))
    assert found.paused_ns == 1_000 * (70 + 70 + 34 + 70)
    assert merge_eager_ops([found, found]).paused_ns == 2 * found.paused_ns
