import pytest

from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.input import input_stalls
from pipeline_lab.analysis.input.input_stalls import InputStalls
from pipeline_lab.analysis.steps import recorded_steps
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.trace.schema import Trace
from tests.support.traces import PROCESS, WAIT, gpu, host, kernels, line, trace

TRAIN = line("python", ("train", 0, 100, {"step_num": 3, "_r": 1}), ("train", 100, 100, {"step_num": 4, "_r": 1}))


def find(captured: Trace) -> InputStalls:
    activity = Activity(captured)
    return input_stalls.find_stalls(activity, recorded_steps.find_steps(activity))


def test_waits_are_joined_over_threads_and_clipped_to_the_steps():
    # 10–30 and 20–40 overlap: 30; 190–250 reaches 50 past the last step: 10 inside
    captured = trace(host(TRAIN, line("tf_data_a", (WAIT, 10, 20)), line("tf_data_b", (WAIT, 20, 20), (WAIT, 190, 60))))
    stalls = find(captured)
    assert (stalls.wait_ns, stalls.events, stalls.event_sum_ns) == (40_000, 3, 100_000)
    assert stalls.step_ns == 200_000
    assert stalls.wait_percent == 20.0
    assert [row["step"] for row in stalls.table.to_pylist()] == [3, 4]


def test_a_wait_hidden_under_device_work_is_not_exposed():
    stalls = find(trace(host(TRAIN, line("tf_data", (WAIT, 0, 40))), gpu(kernels((10, 20)))))
    assert (stalls.wait_ns, stalls.exposed_ns, stalls.exposed_percent) == (40_000, 20_000, 10.0)


@pytest.mark.parametrize(
    "name",
    [
        "IteratorGetNextOp::DoCompute",
        "IteratorGetNextAsOptionalOp::DoCompute",
        "IteratorGetNextSync",
        "a/b:IteratorGetNextSync",
    ],
)
def test_true_waits_count_whatever_their_name(name: str):
    assert find(trace(host(TRAIN, line("tf_data", (name, 0, 40))))).wait_ns == 40_000


@pytest.mark.parametrize(
    "name",
    [
        "IteratorGetNext:IteratorGetNext",
        "IteratorGetNextAsOptional_4:IteratorGetNextAsOptional",
        "IteratorGetNext/_3:_Send",
        "IteratorGetNextAsOptional_5/_47:_Recv",
        "IteratorGetNext:Identity",
        "cond/IteratorGetNext:Switch",
        "MultiDeviceIteratorFromStringHandle:MultiDeviceIteratorFromStringHandle",
        "cub::TransformInputIterator",
        "ShuffleInTensor3Simple",
        "Iterator::Prefetch::Generator",
        "Iterator::Root::Prefetch",
    ],
)
def test_traps_are_no_waits(name: str):
    with pytest.raises(TraceIncompleteError, match="IteratorGetNext"):
        find(trace(host(TRAIN, line("worker", (name, 0, 90)))))


def test_wrappers_stand_in_only_where_the_wait_itself_is_missing():
    wrapper = ("EagerLocalExecute: IteratorGetNext", 0, 50)
    assert find(trace(host(TRAIN, line("main", wrapper)))).wait_ns == 50_000
    assert find(trace(host(TRAIN, line("main", wrapper, (WAIT, 5, 40))))).wait_ns == 40_000


def test_a_wait_outside_every_step_is_in_the_table_and_in_no_number():
    stalls = find(trace(host(TRAIN, line("tf_data", (WAIT, 0, 10), (WAIT, 300, 50)))))
    assert stalls.wait_ns == 10_000
    assert stalls.table.column("step").to_pylist() == [3, None]


def test_merge_adds_up():
    one = find(trace(host(TRAIN, line("tf_data", (WAIT, 0, 40)), line("tf_Compute", (PROCESS, 30, 50)))))
    both = input_stalls.merge_stalls([one, one])
    assert (both.wait_ns, both.exposed_ns, both.step_ns, both.events) == (80_000, 60_000, 400_000, 2)
    alone = input_stalls.merge_stalls([one])
    assert (alone.wait_ns, alone.events, alone.event_names) == (one.wait_ns, one.events, one.event_names)
    assert alone.table.equals(one.table)
