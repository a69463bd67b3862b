"""Launches on the host and the work of a device that belongs to them; times in µs."""

from pathlib import Path

from pipeline_lab.analysis.activity.launches import UNSEEN, find_launches
from pipeline_lab.trace.xplane.xspace import read_xplane
from tests.support.traces import Event, gpu, host, line, trace
from tests.support.xspace import XSpace


def event(name: str, start: float, duration: float, correlation: int) -> Event:
    return name, start, duration, {"correlation_id": correlation}


def test_a_launch_is_done_when_the_last_of_its_device_events_is():
    found = find_launches(
        trace(
            host(line("python", event("cuGraphLaunch", 0, 2, 7), event("cuLaunchKernel", 5, 2, 9))),
            gpu(line("Stream #1(Compute)", event("a", 10, 5, 7), event("b", 20, 5, 7), event("c", 30, 5, 9))),
        )
    )
    assert found.start_ns.tolist() == [0, 5_000]
    assert found.begun_ns.tolist() == [10_000, 30_000]
    assert found.done_ns.tolist() == [25_000, 35_000]
    assert found.is_seen.all()


def test_a_launch_whose_work_was_not_recorded_stays_unseen():
    calls = [event("cuLaunchKernel", 0, 2, 1), event("cuLaunchKernel", 5, 2, 2)]
    found = find_launches(trace(host(line("python", *calls)), gpu(line("Stream #1", event("a", 10, 5, 1)))))
    assert found.done_ns.tolist() == [15_000, UNSEEN]
    assert find_launches(trace(host(line("python", *calls)))).is_seen.tolist() == [False, False]


def test_calls_that_never_have_a_part_on_the_device_are_no_launches():
    # up to TensorFlow 2.4 the profiler does not record what a device does for a memset
    calls = [event("cuLaunchKernel", 0, 2, 1), event("cuMemsetD32Async", 5, 2, 2)]
    found = find_launches(trace(host(line("python", *calls)), gpu(line("Stream #1", event("a", 10, 5, 1)))))
    assert found.start_ns.tolist() == [0]


def test_old_captures_name_the_launch_as_the_kernel():
    found = find_launches(
        trace(host(line("tf_gpu_private_4", event("conv", 0, 2, 1))), gpu(line("Stream #1", event("conv", 10, 5, 1))))
    )
    assert found.done_ns.tolist() == [15_000]


def test_what_tf_data_copies_ahead_belongs_to_no_step():
    copy = line("tf_data_iterator_resource/1", event("cuMemcpyHtoDAsync", 0, 2, 1))
    assert not find_launches(trace(host(copy), gpu(line("Stream #1", event("MemcpyH2D", 10, 5, 1))))).count


def test_unsigned_ids_and_planes_of_cupti_are_read(tmp_path: Path):
    space = XSpace()
    space.plane("/host:CPU").line("python").event("train", 0, 10, step_num=0)
    space.plane("/host:CUPTI").line("123").event("cuLaunchKernel", 1, 1, correlation_id=5)
    space.plane("/device:GPU:0").line("Stream #1(Compute)").event("kernel", 4, 8, correlation_id=5)
    found = find_launches(read_xplane(space.write(tmp_path / "h.xplane.pb")))
    assert found.done_ns.tolist() == [12_000]


def test_a_trace_without_ids_has_none():
    assert not find_launches(trace(host(line("python", ("cuLaunchKernel", 0, 2))), gpu())).count


def test_a_device_whose_events_carry_no_ids_tells_of_no_launches():
    calls = line("python", event("hipLaunchKernel", 0, 2, 1))
    assert not find_launches(trace(host(calls), gpu(line("Stream #1", ("kernel", 10, 5))))).count
