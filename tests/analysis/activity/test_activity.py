"""What counts as work, and as the training thread."""

import numpy as np

from pipeline_lab.analysis.activity.activity import HOST_COMPUTE, Activity
from pipeline_lab.analysis.activity.intervals import IntArray, intersect, total
from tests.support.traces import PROCESS, WAIT, Event, gpu, host, kernels, line, plane, trace


def spans_us(intervals: IntArray) -> list[tuple[float, float]]:
    return [(start / 1000, end / 1000) for start, end in intervals.tolist()]


def test_host_compute_is_ops_and_executors_outside_of_tf_data():
    activity = Activity(
        trace(
            host(
                line("python", ("train", 0, 100, {"step_num": 0, "_r": 1}), ("EagerExecute", 0, 95), (WAIT, 5, 20)),
                line("tf_Compute/1", (PROCESS, 30, 20), ("model/conv:Conv2D", 45, 15)),
                line("tf_data_private_threadpool/2", (PROCESS, 0, 90), ("DecodeJpeg:DecodeJpeg", 0, 90)),
                line("tf_data_iterator_resource/3", ("Iterator::Root::Prefetch::BatchV2", 0, 90)),
            )
        )
    )
    assert activity.devices[0].name == HOST_COMPUTE
    assert spans_us(activity.busy) == [(30, 60)]  # neither the wait nor what is left of the step


def test_tf_datas_work_on_the_training_thread_is_no_host_compute():
    # a serial map runs inside the wait, executor events and all
    activity = Activity(trace(host(line("python", (WAIT, 0, 50), (PROCESS, 10, 30), (PROCESS, 60, 20)))))
    assert spans_us(activity.busy) == [(60, 80)]


def test_ops_called_from_python_count_only_inside_the_steps():
    calls = [("EagerLocalExecute: MatMul", 10, 20), ("EagerLocalExecute: Conv2D", 60, 20)]
    marked = ("train", 0, 50, {"step_num": 0, "_r": 1})
    assert spans_us(Activity(trace(host(line("python", marked, *calls)))).busy) == [(10, 30)]
    assert spans_us(Activity(trace(host(line("python", *calls)))).busy) == [(10, 30), (60, 80)]


def test_a_call_of_a_whole_function_is_no_work_by_itself():
    activity = Activity(trace(host(line("python", ("EagerLocalExecute: __inference_step_12", 0, 100)))))
    assert total(activity.busy) == 0


def test_old_captures_ran_tf_datas_functions_on_the_shared_pool():
    activity = Activity(
        trace(
            host(
                line("tf_data_iterator_resource", ("InstantiatedCapturedFunction::RunAsync", 0, 5, {"id": 7})),
                line(
                    "tf_Compute/1",
                    (PROCESS, 0, 40, {"id": 7}),
                    ("GatherV2:GatherV2", 0, 39),
                    (PROCESS, 50, 9, {"id": 8}),
                ),
            )
        )
    )
    assert spans_us(activity.busy) == [(50, 59)]


def test_only_streams_are_work_of_a_gpu():
    device = gpu(
        line("Stream #7(Compute)", ("conv", 0, 10)),
        line("Stream #8(MemcpyH2D)", ("MemcpyH2D", 20, 10)),
        line("Stream #9(MemcpyD2H)", ("MemcpyD2H", 40, 10)),
        line("Stream #10(Compute)", ("ncclDevKernel_AllReduce_Sum_f32", 5, 15)),
        line("TensorFlow Ops", ("conv:Conv2D", 0, 100)),
        line("XLA Ops", ("fusion", 0, 100)),
        line("Steps", ("0", 0, 100)),
    )
    (found,) = Activity(trace(device)).devices
    assert spans_us(found.compute) == [(0, 10)]
    assert spans_us(found.collective) == [(5, 20)]
    assert spans_us(found.copy) == [(40, 50)]
    assert spans_us(found.host_to_device) == [(20, 30)]
    assert spans_us(found.work) == [(0, 20), (40, 50)]


def test_xla_ops_are_work_of_a_tpu_and_its_asynchronous_line_is_not():
    device = plane(
        "/device:TPU:0",
        line("XLA Modules", ("jit_f", 0, 100)),
        line("XLA Ops", ("%fusion = f32[] fusion(%all-reduce.1)", 0, 10), ("%infeed.2 = (s32[]) infeed()", 10, 30)),
        line("Async XLA Ops", ("%copy-start.4 = f32[]", 0, 80), ("%copy-start.5 = f32[]", 20, 40)),
    )
    (found,) = Activity(trace(device)).devices
    assert spans_us(found.work) == [(0, 10)]
    assert spans_us(found.host_to_device) == [(10, 40)]


def test_idle_and_custom_devices_are_left_out():
    captured = trace(gpu(number=0), plane("/device:CUSTOM:Megascale Trace", line("Stream #1", ("x", 0, 50))))
    assert not Activity(captured).has_devices


def test_the_training_thread_holds_the_markers_or_calls_tensorflow_most():
    marked = line("Thread-7", ("train", 0, 10, {"step_num": 0, "_r": 1}))
    calling = line("python", ("TFE_Py_Execute", 0, 5), ("TFE_Py_Execute", 6, 5))
    pool = line("tf_Compute/1", *[("FunctionRun", start, 1) for start in range(5)])
    assert Activity(trace(host(pool, calling, marked))).training_line is not None
    assert Activity(trace(host(pool, calling, marked))).training_line.name == "Thread-7"
    assert Activity(trace(host(pool, calling))).training_line.name == "python"
    assert Activity(trace(host(pool))).training_line is None


def test_without_a_device_the_window_ends_with_what_is_known_of_the_training_thread():
    step_under_way = line("tf_Compute/1", ("ExecutorState::Process", 80, 15))
    seen = Activity(trace(host(line("python", ("TFE_Py_Execute", 30, 40)), step_under_way), profiled_us=(10, 100)))
    assert seen.extent == (10_000, 70_000)
    assert seen.devices[0].work.tolist() == []


def test_what_a_pool_tells_after_the_profiler_was_stopped_is_no_part_of_the_window():
    late: list[Event] = [("ThreadpoolListener::Record", 900, 1)]
    seen = Activity(trace(host(line("python", ("TFE_Py_Execute", 30, 40), *late)), profiled_us=(10, 1000)))
    assert seen.extent == (10_000, 70_000)


def test_the_steps_of_a_loop_inside_of_a_function_are_the_function_that_tf_data_calls_in_them():
    scan, asks, runs = "ReduceIterator::Root::Prefetch::Scan", "BatchV2", "InstantiatedCapturedFunction::Run"
    steps: list[Event] = [
        event
        for start in (0, 100, 200)
        for event in ((scan, start, 90), (f"{scan}::{asks}", start, 40), (runs, start + 10, 20), (runs, start + 45, 40))
    ]
    activity = Activity(trace(host(line("python", ("TFE_Py_Execute", 0, 300)), line("tf_data_prefetch/1", *steps))))
    assert spans_us(activity.waits.moments) == [(0, 40), (100, 140), (200, 240)]
    assert spans_us(activity.host_spans) == [(0, 100), (100, 200)]
    assert activity.rhythm_label == "rhythm of a loop in tf.function"
    assert spans_us(activity.busy) == [(45, 85), (145, 185), (245, 285)], "not the map that runs while it waits"


def test_of_a_loop_inside_of_another_loops_step_the_inner_one_takes_the_steps():
    def loop(name: str, *spans: tuple[int, int, int]) -> list[Event]:
        scan, runs = f"ReduceIterator::Root::{name}Scan", "InstantiatedCapturedFunction::Run"
        asks = [(f"{scan}::Batch", start, wait, {"id": start // 1000 + 1}) for start, wait, _ in spans]
        works = [(runs, start + wait, end - start - wait) for start, wait, end in spans]
        return [*((scan, start, end - start) for start, _, end in spans), *asks, *works]

    outer = line("tf_data_reduce_dataset/1", *loop("", (0, 10, 490), (500, 10, 990)))
    inner = line("tf_data_prefetch/2", *loop("Prefetch::", *((start, 60, start + 90) for start in (50, 150, 550, 650))))
    activity = Activity(trace(host(line("python", ("TFE_Py_Execute", 0, 1000)), outer, inner)))
    assert spans_us(activity.waits.moments) == [(50, 110), (150, 210), (550, 610), (650, 710)]
    assert spans_us(activity.host_spans)[0] == (50, 150)
    assert total(intersect(activity.busy, np.array([[50_000, 150_000]]))) == 40_000


def test_python_that_called_a_loop_before_the_window_is_inside_of_it():
    scan = "ReduceIterator::Root::Scan"
    steps: list[Event] = [
        each for at in (0, 100, 200) for each in ((scan, at, 90), (f"{scan}::Batch", at, 60, {"id": 7}))
    ]
    activity = Activity(
        trace(host(line("python", ("TFE_Py_Execute", 400, 5)), line("tf_data_reduce_dataset/1", *steps)))
    )
    assert spans_us(activity.runtime) == [(0, 260), (400, 405)]


def test_loops_and_what_asks_from_outside_do_not_mix():
    scan, runs = "ReduceIterator::Root::Scan", "InstantiatedCapturedFunction::Run"
    steps: list[Event] = [
        each for at in (0, 100, 200) for each in ((scan, at, 90), (f"{scan}::Batch", at, 60), (runs, at + 60, 30))
    ]
    asks = line("tf_data_iterator_get_next/1", *((WAIT, start, 5) for start in (300, 310, 320)))
    python = line("python", ("TFE_Py_Execute", 0, 700))
    trains = Activity(trace(host(python, line("tf_data_reduce_dataset/1", *steps), asks)))
    assert spans_us(trains.host_spans) == [(0, 100), (100, 200)]
    validates = line("tf_data_reduce_dataset/1", (scan, 400, 20), (f"{scan}::Batch", 400, 10), (runs, 410, 10))
    asks = line("tf_data_iterator_get_next/1", *((WAIT, start, 5) for start in (0, 100, 200, 300, 500, 600)))
    assert spans_us(Activity(trace(host(python, asks, validates))).host_spans) == [
        (0, 100), (100, 200), (200, 300), (500, 600)
    ]  # fmt: skip


def test_a_function_that_takes_its_batches_itself_is_known_until_its_last_request():
    calls = line("tf_data_iterator_get_next/1", *[(WAIT, start, 5) for start in (20, 60, 100)])
    seen = Activity(trace(host(line("python", ("TFE_Py_Execute", 10, 40)), calls), profiled_us=(0, 200)))
    assert seen.host_spans[-1].tolist() == [60_000, 100_000]
    assert seen.extent == (0, 100_000)


def test_the_window_is_when_the_profiler_was_on():
    events = host(line("python", ("TFE_Py_Execute", 30, 40)))
    assert Activity(trace(events)).extent == (30_000, 70_000)
    assert Activity(trace(events, gpu(kernels((60, 50))), profiled_us=(10, 100))).extent == (10_000, 110_000)


def test_waiting_for_a_batch_on_a_device_is_waiting_for_input_only_while_the_host_waits_too():
    # next() of prefetch_to_device waits for the copy to the device and for what the device does before it
    ahead = line("python", (WAIT, 0, 100), ("Iterator::Prefetch", 1, 98, {"id": 1}))
    copies = line("tf_data_iterator_resource/1", ("Iterator::Prefetch::Generator", 0, 100, {"id": 2}))
    requests = [(name, at, 20, {"id": 3}) for at in (10, 200) for name in (WAIT, "Iterator::Root")]
    host_side = line("tf_data_iterator_get_next/2", *requests)
    waits = Activity(trace(host(ahead, copies, host_side))).waits
    assert spans_us(waits.moments) == [(10, 30)]
    assert (waits.start_ns.tolist(), waits.iterator.tolist()) == ([0], [1])


def test_what_the_host_waited_for_when_the_profiler_started_may_be_input():
    ahead = line("python", (WAIT, 0, 100), ("Iterator::Prefetch", 1, 98, {"id": 1}))
    copies = line("tf_data_iterator_resource/1", ("Iterator::Prefetch::Generator", 40, 50, {"id": 2}))
    host_side = line("tf_data_iterator_get_next/2", (WAIT, 60, 10), ("Iterator::Root", 60, 10, {"id": 3}))
    assert spans_us(Activity(trace(host(ahead, copies, host_side))).waits.moments) == [(0, 40), (60, 70)]


def test_a_batch_that_a_function_on_the_host_waits_for_is_waited_for():
    # in a graph the wait runs on a thread of tf.data's, without any iterator on a device
    waiting = line("tf_data_iterator_get_next/2", (WAIT, 10, 30), ("Iterator::Root", 11, 28, {"id": 3}))
    assert spans_us(Activity(trace(host(waiting))).waits.moments) == [(10, 40)]
