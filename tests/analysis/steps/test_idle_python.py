"""Python functions of hand-made traces; times in µs."""

from dataclasses import replace

import pytest

from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.steps import recorded_steps
from pipeline_lab.analysis.steps.idle_python import IdlePython, PythonFunction, find_idle_python, merge_idle_python
from pipeline_lab.errors import TraceIncompleteError
from tests.support.traces import Event, gpu, host, kernels, line, trace

STEP = "PjitFunction(train_step)"


def find(*events: Event) -> IdlePython:
    """Three calls of a step from 0 on, 100 apart, each of 20; the device works for 40 from each on."""
    calls = [(STEP, start, 20) for start in (0, 100, 200)]
    activity = Activity(trace(host(line("python", *calls, *events)), gpu(kernels((0, 40), (100, 40), (200, 40)))))
    return find_idle_python(activity, recorded_steps.find_steps(activity))


def test_idle_time_counts_for_the_functions_that_the_loop_calls():
    """The loop calls the step itself; what `batches` calls is its own time, and the device works for a part of it."""
    loop = ("$train.py:10 main", -5, 300)
    found = find(
        loop,
        *(("$train.py:20 batches", start, 50) for start in (30, 130)),
        *(("$decode.py:5 decode", start, 40) for start in (35, 135)),
        ("$train.py:30 log", 85, 10),
        ("$time sleep", 85, 10),
    )
    assert (found.steps_ns, found.total_ns) == (200_000, 120_000)
    assert found.functions == (
        PythonFunction("batches", "train.py", 20, 80_000),
        PythonFunction("log", "train.py", 30, 10_000),
    )


def test_a_trace_without_the_python_tracer_says_how_to_record_it():
    with pytest.raises(TraceIncompleteError, match="python_tracer_level=1"):
        find()


def test_functions_of_several_traces_are_added_up():
    one = PythonFunction("batches", "train.py", 20, 80)
    other = PythonFunction("log", "train.py", 30, 100)
    found = merge_idle_python([IdlePython(500, 120, (one,)), IdlePython(600, 220, (other, one))])
    assert found == IdlePython(1100, 340, (replace(one, idle_ns=160), other))
