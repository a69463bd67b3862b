"""Steps of hand-made traces; times in µs."""

import numpy as np
import pytest

from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.steps import recorded_steps
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.errors import TraceIncompleteError
from tests.support.traces import PROCESS, WAIT, Event, gpu, host, kernels, line, plane, trace


def marks(name: str, *spans: tuple[int, int, int], **stats: int) -> list[Event]:
    """Return markers given as (number, start, duration)."""
    return [(name, start, duration, {"step_num": number, **stats}) for number, start, duration in spans]


def find(*lines: object) -> Steps:
    return recorded_steps.find_steps(Activity(trace(host(*lines))))


def spans_us(found: Steps) -> list[tuple[float, float]]:
    return [(start / 1000, end / 1000) for start, end in tables.intervals(found.table).tolist()]


def numbers(found: Steps) -> list[int]:
    return found.table.column("step").to_pylist()


def test_a_step_lasts_from_the_end_of_the_one_before_it():
    found = find(line("python", *marks("train", (5, 100, 50), (6, 200, 50), (7, 300, 50), _r=1)))
    assert found.marker == "Trace 'train' (step_num)"
    assert numbers(found) == [5, 6, 7]
    assert spans_us(found) == [(100, 150), (150, 250), (250, 350)]


def test_a_step_after_a_pause_in_the_numbers_begins_with_its_own_marker():
    # an evaluation lies between step 6 and the next epoch's step 0
    found = find(line("python", *marks("train", (5, 0, 50), (6, 100, 50), (0, 900, 50), (1, 1000, 50), _r=1)))
    assert spans_us(found) == [(0, 50), (50, 150), (900, 950), (950, 1050)]


def test_executions_of_several_steps_count_in_strides():
    found = find(line("python", *marks("Profiled batch", (0, 0, 50), (4, 100, 50), (8, 200, 50))))
    assert found.marker == "Keras 'Profiled batch' (step_num)"
    assert spans_us(found) == [(0, 50), (50, 150), (150, 250)]


@pytest.mark.parametrize(
    ("name", "stats", "marker"),
    [
        ("my loop", {"_r": 1}, "Trace 'my loop' (step_num)"),
        ("Profiled batch", {}, "Keras 'Profiled batch' (step_num)"),
        ("TraceContext", {"graph_type": 1}, "TraceContext (step_num)"),
    ],
)
def test_every_marker_with_a_step_number_counts(name: str, stats: dict[str, int], marker: str):
    found = find(line("python", *marks(name, (2, 0, 50), (3, 100, 50), **stats)))
    assert (found.marker, numbers(found)) == (marker, [2, 3])


def test_explicit_training_steps_win_over_evaluation_and_keras():
    found = find(
        line(
            "python",
            *marks("test", *((number, number * 10, 5) for number in range(9)), _r=1),
            *marks("train", (5, 100, 50), (6, 200, 50), _r=1),
            *marks("Profiled batch", (5, 90, 70), (6, 190, 70)),
        )
    )
    assert (found.marker, found.count) == ("Trace 'train' (step_num)", 2)


def test_keras_2_is_known_by_step_name_and_iter_num():
    events = [
        ("train_function", 100 * i, 50, {"step_name": str(i), "iter_num": 40 + i, "group_id": i}) for i in range(3)
    ]
    found = find(line("python", *events))
    assert (found.marker, numbers(found)) == ("Keras 'train_function' (step_name)", [40, 41, 42])


def test_keras_training_function_without_any_stats_counts():
    found = find(line("python3", ("train_function", 0, 64), (WAIT, 5, 13)))
    assert (found.marker, found.count, found.first_step_only) == ("Keras 'train_function'", 1, False)


def test_an_evaluation_belongs_to_no_step_whatever_the_model_calls_in_it():
    keras, begins, ends = "multi_step_on_iterator", ("evaluation begins", 210, 0), ("evaluation ends", 480, 0)
    calls: list[Event] = [(keras, start, 50) for start in (0, 100, 250, 400, 500, 600)]
    found = find(line("python3", *calls, begins, ends))
    assert spans_us(found) == [(0, 50), (50, 150), (500, 550), (550, 650)]
    assert spans_us(find(line("python3", *calls[2:], ends))) == [(500, 550), (550, 650)], "it began before the window"
    assert spans_us(find(line("python3", *calls[:3], begins))) == [(0, 50), (50, 150)], "it ended after the window"
    with pytest.raises(TraceIncompleteError, match="No steps"):
        find(line("python3", *calls[2:4], ("evaluation begins", 200, 0)))


def test_an_evaluation_inside_another_one_ends_neither_the_outer_one_nor_the_steps():
    begins, ends = (lambda at: ("evaluation begins", at, 0)), (lambda at: ("evaluation ends", at, 0))
    marked = marks("train", (2, 400, 50), (3, 500, 50), _r=1)
    for inside in (
        [ends(100), ends(120)],
        [begins(10), ends(100), ends(120)],
        [begins(10), begins(20), ends(30), ends(40)],
    ):
        assert spans_us(find(line("python", *inside, *marked))) == [(400, 450), (450, 550)]


def test_a_step_in_which_the_model_is_evaluated_is_left_out():
    marked = marks("gradients", (0, 0, 500), (1, 500, 100), (2, 600, 100), _r=1)
    found = find(line("python", *marked, ("evaluation begins", 100, 0), ("evaluation ends", 300, 0)))
    assert numbers(found) == [1, 2]


def test_the_rhythm_of_an_evaluation_is_not_that_of_the_steps():
    calls = line("tf_data_iterator_get_next/1", *((WAIT, start, 10) for start in (0, 100, 250, 300, 350, 500, 600)))
    found = find(line("python", ("evaluation begins", 210, 0), ("evaluation ends", 480, 0)), calls)
    assert spans_us(found) == [(0, 100), (500, 600)]


def test_steps_with_an_evaluation_between_them_do_not_follow_each_other():
    marked = marks("train", (5, 0, 50), (6, 100, 50), (7, 900, 50), _r=1)
    found = find(line("python", *marked, ("evaluation begins", 160, 0), ("evaluation ends", 880, 0)))
    assert spans_us(found) == [(0, 50), (50, 150), (900, 950)]


def test_loops_inside_a_step_do_not_lose_it():
    waits = [(WAIT, start, 10) for start in (0, 30, 60, 100, 130, 160)]
    found = find(
        line("python", *marks("train", (0, 0, 90), (1, 100, 90), _r=1)), line("tf_data_iterator_get_next/1", *waits)
    )
    assert (found.count, found.steps_per_marker) == (2, 3.0)


def test_pieces_of_one_step_are_joined_and_nested_markers_dropped():
    found = find(line("python", *marks("train", (5, 0, 20), (5, 30, 20), (6, 100, 50), (6, 110, 10), _r=1)))
    assert spans_us(found) == [(0, 50), (50, 150)]


def test_a_number_that_never_changes_is_no_number():
    found = find(line("python", *marks("train", (0, 0, 20), (0, 30, 20), (0, 60, 20), _r=1)))
    assert numbers(found) == [0, 1, 2]


def test_device_steps_that_are_far_apart_stay_two():
    first = gpu(kernels((0, 10)), line("Steps", ("0", 0, 20)), number=4)
    second = gpu(kernels((900, 10)), line("Steps", ("0", 900, 30)), number=6)
    found = recorded_steps.find_steps(Activity(trace(first, second)))
    assert found.marker == "device Steps line"
    assert spans_us(found) == [(0, 20), (900, 930)]


def test_the_same_step_on_two_devices_at_a_time_is_one():
    devices = [gpu(kernels((0, 10)), line("Steps", ("3", n, 20), ("4", 40 + n, 20)), number=n) for n in range(2)]
    found = recorded_steps.find_steps(Activity(trace(*devices)))
    assert (numbers(found), spans_us(found)) == ([3, 4], [(0, 21), (21, 61)])


def test_without_markers_the_rhythm_of_the_iterator_counts():
    found = find(line("python", (WAIT, 10, 5), (WAIT, 110, 5), (WAIT, 210, 5)))
    assert found.marker == "rhythm of IteratorGetNextOp::DoCompute"
    assert spans_us(found) == [(10, 110), (110, 210)]  # what comes before the first and after the last is partial


def test_without_markers_the_rhythm_of_a_jitted_step_counts():
    """The evaluation takes the host longer; the step keeps the device busy."""
    step, other = "PjitFunction(train_step)", "PjitFunction(evaluate)"
    launch, of_launch = "cuLaunchKernel", {"correlation_id": 0}
    calls = [(step, start, 20) for start in (0, 100, 200)]
    inner = [(step, start, 19) for start in (1, 101, 201)]
    launches = [(launch, start, 5, {**of_launch, "correlation_id": start}) for start in (5, 65, 105, 165, 205)]
    evaluations = [(other, start, 35) for start in (60, 160)]
    busy = ((5, 40), (65, 2), (105, 40), (165, 2), (205, 40))
    stream = line(
        "Stream #1(Compute)", *(("kernel", start + 1, length, {"correlation_id": start}) for start, length in busy)
    )
    recorded = trace(host(line("python", *calls, *inner, *launches, *evaluations)), gpu(stream))
    found = recorded_steps.find_steps(Activity(recorded))
    assert found.marker == "rhythm of PjitFunction(train_step)"
    assert spans_us(found) == [(0, 100), (100, 200)]


def test_without_a_device_the_jitted_function_that_takes_longest_counts():
    step, other = "PjitFunction(train_step)", "PjitFunction(split)"
    found = find(line("python", (other, 0, 2), (step, 5, 60), (other, 100, 2), (step, 105, 60), (step, 205, 60)))
    assert spans_us(found) == [(5, 105), (105, 205)]


@pytest.mark.parametrize(
    "others",
    [
        [("PjitFunction(evaluate)", 10, 3000), ("PjitFunction(evaluate)", 5000, 40)],  # the first call compiles
        [("PjitFunction(evaluate)", 5000 + 400 * n, 300) for n in range(2)],  # longer than all steps together
        [("PjitFunction(split)", 4000 + 20 * n, 2) for n in range(40)],  # as often as the step
    ],
)
def test_the_jitted_step_is_told_from_what_compiles_evaluates_or_splits(others: list[Event]):
    steps: list[Event] = [("PjitFunction(train_step)", 4010 + 20 * n, 9) for n in range(40)]
    assert find(line("python", *steps, *others)).marker == "rhythm of PjitFunction(train_step)"


def test_one_call_of_a_jitted_function_marks_no_step():
    with pytest.raises(TraceIncompleteError, match="no jitted function is called twice"):
        find(line("python", ("PjitFunction(train_step)", 0, 60)))


def test_nothing_to_mark_steps_is_said():
    with pytest.raises(TraceIncompleteError, match=r"^No steps in this trace.*Trace\('train', step_num=i, _r=1\)"):
        find(line("python", ("FunctionRun", 0, 10), (WAIT, 0, 5)))


def test_wait_busy_and_exposed_of_a_step():
    # 100 µs: waits for 0–40, the device works for 30–80
    found = recorded_steps.find_steps(
        Activity(trace(host(line("python", *marks("train", (1, 0, 100), _r=1), (WAIT, 0, 40))), gpu(kernels((30, 50)))))
    )
    row = found.table.to_pylist()[0]
    assert (row["wait_ns"], row["busy_ns"], row["exposed_ns"]) == (40_000, 50_000, 30_000)


@pytest.mark.parametrize(("number", "is_first"), [(0, True), (1, True), (7, False)])
def test_a_lone_first_step_is_called_that(number: int, is_first: bool):
    assert find(line("python", *marks("train", (number, 0, 100), _r=1))).first_step_only is is_first


def test_a_lone_step_that_compiles_is_a_first_one():
    found = find(line("python", *marks("train", (7, 0, 100), _r=1), ("tf.function-graph_building", 10, 60)))
    assert found.first_step_only


def test_markers_on_threads_of_the_runtime_are_ignored():
    with pytest.raises(TraceIncompleteError):
        find(line("tf_Compute/1", *marks("train", (0, 0, 10), (1, 20, 10), _r=1)))


def test_merge_is_the_identity_on_one_part_and_does_not_mind_the_order():
    first = find(line("python", *marks("train", (5, 0, 50), _r=1)))
    second = tables.place(find(line("python", *marks("train", (9, 0, 50), (10, 60, 50), _r=1))), 1, 10**9)
    alone, merged, turned = (
        recorded_steps.merge_steps([first]),
        recorded_steps.merge_steps([first, second]),
        recorded_steps.merge_steps([second, first]),
    )
    assert alone.table.equals(first.table)
    assert (alone.marker, alone.first_step_only) == (first.marker, first.first_step_only)
    assert merged.table.equals(turned.table)
    assert numbers(merged) == [5, 9, 10]
    assert np.array_equal(merged.table.column("window").to_numpy(), [0, 1, 1])


def test_host_markers_win_over_device_steps():
    device = plane("/device:GPU:0", kernels((0, 10)), line("Steps", ("0", 0, 20)))
    found = recorded_steps.find_steps(Activity(trace(host(line("python", *marks("train", (5, 0, 50), _r=1))), device)))
    assert numbers(found) == [5]


def test_executor_time_counts_as_busy_without_a_device_plane():
    found = find(line("python", *marks("train", (3, 0, 100), _r=1)), line("tf_Compute/1", (PROCESS, 20, 30)))
    assert found.table.column("busy_ns").to_pylist() == [30_000]
