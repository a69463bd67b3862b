"""Idle gaps of hand-made traces; times in µs unless a name says ms."""

import itertools
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.idle import gap_causes, idle_gaps
from pipeline_lab.analysis.idle.idle_gaps import IdleGaps
from pipeline_lab.analysis.steps import recorded_steps, step_breakdown
from pipeline_lab.analysis.steps.step_breakdown import PARTS
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from pipeline_lab.trace.schema import Trace
from tests.support.traces import PROCESS, WAIT, Event, gpu, host, kernels, line, trace


def find(*planes: Any, **options: Any) -> IdleGaps:
    return idle_gaps.find_gaps(Activity(trace(*planes, **options)))


def shares_us(found: IdleGaps) -> dict[str, float]:
    return {cause.value: length / 1000 for cause, length in found.by_cause_ns.items() if length}


def rows(found: IdleGaps) -> list[tuple[float, float, str]]:
    return [(row["start_ns"] / 1000, row["duration_ns"] / 1000, row["cause"]) for row in found.gaps.to_pylist()]


def test_every_idle_moment_has_one_cause():
    # 0–1000: idle but for kernels at 300–400 and 900–1000
    found = find(
        host(
            line("python", ("EagerExecute", 100, 200), (WAIT, 150, 100), ("tf.function-graph_building", 400, 100)),
            line("transfer", ("MemcpyH2D", 240, 40)),
        ),
        gpu(kernels((300, 100), (900, 100))),
        profiled_us=(0, 1000),
    )
    assert rows(found) == [(0, 300, "input_wait"), (400, 500, "python")]
    assert shares_us(found) == {"input_wait": 100, "host_to_device": 30, "compile": 100, "dispatch": 70, "python": 500}
    assert (found.busy_ns, found.idle_ns) == (200_000, 800_000)
    assert found.idle_percent == 80.0


def test_of_windows_without_device_time_no_idle_share_is_known():
    empty = replace(find(host(), gpu(kernels((0, 10))), profiled_us=(0, 10)), devices=())
    assert isinstance(empty.idle_percent, Unavailable)
    assert empty.idle_percent.reason.startswith("The windows hold no device time; ")


def test_python_between_steps_is_python():
    # per step: 1 ms call with 0.1 ms wait inside, 8 ms of kernels, 20 ms of Python
    starts = [30_000 * i for i in range(3)]
    calls: list[Event] = [
        (name, s + at, length) for s in starts for name, at, length in (("TFE_Py_Execute", 0, 1000), (WAIT, 100, 100))
    ]
    found = find(
        host(line("python", *calls)), gpu(kernels(*((s + 2000, 8000) for s in starts))), profiled_us=(0, 90_000)
    )
    assert [row[2] for row in rows(found) if row[1] > 10_000] == ["python"] * 3
    assert found.by_cause_ns[GapCause.PYTHON] == 3 * 21_000_000
    assert found.by_cause_ns[GapCause.INPUT_WAIT] == 3 * 100_000


def test_a_host_operation_that_fills_half_of_the_gap_names_it():
    def gap_of(length: float) -> IdleGaps:
        return find(
            host(line("python", ("EagerLocalExecute: DeserializeSparse", 120, length))),
            gpu(kernels((0, 100), (1100, 100))),
        )

    named, unnamed = gap_of(500), gap_of(499)
    assert named.gaps.column("host_operation").to_pylist() == ["DeserializeSparse"]
    assert shares_us(named) == {"host_operation": 500, "python": 500}
    assert unnamed.gaps.column("host_operation").to_pylist() == [None]
    assert shares_us(unnamed) == {"dispatch": 499, "python": 501}


def test_the_same_operation_on_two_threads_is_not_counted_twice():
    op = ("sparse/op:DeserializeSparse", 100, 300)
    found = find(host(line("tf_Compute/1", op), line("tf_Compute/2", op)), gpu(kernels((0, 100), (1100, 100))))
    assert found.gaps.column("host_operation").to_pylist() == [None]  # 300 of 1000


def test_ops_in_short_gaps_launch_kernels_and_name_nothing():
    found = find(host(line("tf_gpu_private_0", ("conv:Conv2D", 10, 40))), gpu(kernels((0, 10), (50, 10))))
    assert shares_us(found) == {"dispatch": 40}


def test_operations_between_the_steps_are_idle_time_of_host_compute():
    marks = [("train", start, 1000, {"step_num": n, "_r": 1}) for n, start in enumerate((0, 2000))]
    between = ("EagerLocalExecute: DeserializeSparse", 1000, 900)
    found = find(host(line("python", *marks, between), line("tf_Compute/1", (PROCESS, 0, 1000), (PROCESS, 2000, 1000))))
    assert found.device == "host compute"
    assert found.gaps.column("host_operation").to_pylist() == ["DeserializeSparse"]
    assert (found.busy_ns, shares_us(found)) == (2_000_000, {"host_operation": 900, "python": 100})


@pytest.mark.slow
def test_one_long_name_does_not_make_room_for_all_others_as_long():
    names = [f"EagerLocalExecute: Op{number}" for number in range(1000)] + ["x" * 100_000]
    calls: list[Event] = [(name, 2 * at, 1) for at, name in enumerate(names)]
    tracemalloc.start()
    try:
        find(host(line("python", *calls), line("tf_Compute/1", (PROCESS, 5000, 10))))
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


def operations(found: IdleGaps) -> list[tuple[str, float]]:
    """Return operation and time in µs of the first gap's operations."""
    gap = found.gaps.to_pylist()[0]
    ranked = found.operations_of(gap["host"], gap["device"], gap["start_ns"])
    assert [row["rank"] for row in ranked] == list(range(1, len(ranked) + 1))
    return [(row["operation"], row["time_ns"] / 1000) for row in ranked]


def test_host_operations_of_a_gap_are_ranked_by_how_much_of_it_they_fill():
    # a gap of 1000: DeserializeSparse 300 + 100, Cast 200 and 100 outside, a checkpoint 50
    found = find(
        host(
            line(
                "python",
                *(
                    ("EagerLocalExecute: DeserializeSparse", start, length)
                    for start, length in ((100, 300), (500, 100))
                ),
                ("EagerLocalExecute: SaveV2", 800, 50),
            ),
            line("tf_Compute/1", ("a:Cast", 0, 300)),
        ),
        gpu(kernels((0, 100), (1100, 100))),
    )
    assert operations(found) == [("DeserializeSparse", 400), ("Cast", 200), ("SaveV2", 50)]
    assert found.gaps.column("host_operation").to_pylist() == [None]  # 400 of 1000
    assert [(one.operation, one.cause.value, one.idle_ns // 1000) for one in found.by_operation] == [
        ("DeserializeSparse", "dispatch", 400),
        ("Cast", "dispatch", 200),
        ("SaveV2", "checkpoint", 50),
    ]


def test_an_iterator_that_python_gives_up_is_told_from_a_tensor_by_its_length():
    ends = [("TFE_DeleteTensorHandle", 10_000, 60_000), ("TFE_DeleteTensorHandle", 80_000, 5)]
    found = find(host(line("python", *ends)), gpu(kernels((0, 100), (90_000, 100))))
    assert shares_us(found) == {"iterator_end": 60_000, "dispatch": 5, "python": 29_895}


def test_making_an_iterator_is_no_dispatch():
    made = ("EagerLocalExecute: MakeIterator", 10_000, 8_000)
    found = find(
        host(line("python", made, ("EagerLocalExecute: AddV2", 18_000, 50))), gpu(kernels((0, 100), (20_000, 100)))
    )
    assert shares_us(found) == {"iterator_end": 8_000, "dispatch": 50, "python": 11_850}


def test_an_op_lasts_as_long_as_pythons_call_of_it():
    call: list[Event] = [("TFE_Py_FastPathExecute_C", 200, 600), ("EagerLocalExecute: DeserializeSparse", 700, 100)]
    found = find(host(line("python", *call)), gpu(kernels((0, 100), (1100, 100))))
    assert operations(found) == [("DeserializeSparse", 600)]
    assert shares_us(found) == {"host_operation": 600, "python": 400}


def test_what_the_iterator_hands_over_in_pieces_is_put_together_by_no_training_step():
    # inside the marked step: 300 µs of DeserializeSparse, 500 µs of the step's own ops
    mark = ("train", 0, 1000, {"step_num": 0, "_r": 1})
    found = find(
        host(
            line("python", mark, ("EagerLocalExecute: DeserializeSparse", 0, 300)),
            line("tf_Compute/1", (PROCESS, 500, 500)),
        )
    )
    assert (found.busy_ns, shares_us(found)) == (500_000, {"host_operation": 300, "python": 200})


def test_waiting_for_other_workers_is_collective():
    # on the host's processor the collective stands for device work; beside a GPU it is why the GPU idles
    waiting = line("collective_ops/1", ("CollectiveReduceV2:CollectiveReduceV2", 100, 400))
    mark = ("train", 0, 1000, {"step_num": 0, "_r": 1})
    alone = Activity(trace(host(line("python", mark), line("tf_Compute/1", (PROCESS, 0, 200)), waiting)))
    parts = step_breakdown.divide_steps(alone, recorded_steps.find_steps(alone)).parts_ns
    assert {name: length // 1000 for name, length in parts.items() if length} == {
        "collective_ns": 300,
        "host_compute_ns": 200,
        "python_ns": 500,
    }
    assert shares_us(find(host(waiting), gpu(kernels((0, 100), (500, 100))))) == {"collective": 400}


def test_what_follows_tracing_until_the_function_runs_is_compiling():
    # traced 0–100, called at 120, instantiated without a trace of it until 500, run until 600; a later call is dispatch
    name = "EagerLocalExecute: __inference_step_7"
    events: list[Event] = [
        ("step", 0, 600),
        ("tf.function-graph_building", 0, 100),
        (name, 120, 480),
        ("EagerKernelExecute", 500, 100),
        (name, 700, 100),
        ("EagerKernelExecute", 710, 90),
    ]
    found = find(host(line("python", *events)), gpu(kernels((800, 100))))
    assert shares_us(found) == {"compile": 480, "dispatch": 220, "python": 100}


def test_a_function_that_xla_compiles_is_compiling_until_the_compiler_is_done():
    events: list[Event] = [
        ("tf.function-graph_building", 0, 100),
        ("EagerLocalExecute: __inference_step_7", 100, 700),
        ("EagerKernelExecute", 110, 690),
        ("CpuCompiler::RunBackend", 300, 400),
    ]
    found = find(host(line("python", *events)), gpu(kernels((800, 100))))
    assert shares_us(found) == {"compile": 700, "dispatch": 100}


def test_trying_out_convolutions_is_compiling():
    # the op runs 0–400; a kernel at 100–150 checks what the tried algorithm wrote
    found = find(
        host(line("tf_gpu_private_0", ("conv:Conv2D", 0, 400), ("conv:Conv2D", 500, 100))),
        gpu(line("Stream #1(Compute)", ("redzone_checker", 100, 50), ("conv_kernel", 400, 100))),
        profiled_us=(0, 600),
    )
    assert shares_us(found) == {"compile": 400, "host_operation": 100}  # the check trains nothing either


def test_what_a_device_tries_out_is_not_work_without_the_op_either():
    checks = [("redzone_checker", start, 10) for start in (100, 200, 300)]
    tried = [("cudnn_candidate", start, 80) for start in (115, 215)]
    found = find(
        host(line("python", ("TFE_Py_Execute", 0, 600))),
        gpu(line("Stream #1(Compute)", *checks, *tried, ("conv_kernel", 400, 100))),
        profiled_us=(0, 600),
    )
    assert found.busy_ns == 100_000
    assert shares_us(found) == {"compile": 210, "dispatch": 290}


def test_an_op_that_launches_work_on_the_device_is_dispatch_however_long_it_takes():
    launch = ("cuLaunchKernel", 390, 5, {"correlation_id": 1})
    tanh = ("EagerLocalExecute: Tanh", 100, 300)
    kernel = ("tanh_kernel", 400, 100, {"correlation_id": 1})
    for calls in ((line("python", tanh, launch),), (line("python", tanh), line("", launch))):
        found = find(host(*calls), gpu(line("Stream #1(Compute)", kernel)), profiled_us=(100, 500))
        assert shares_us(found) == {"dispatch": 300}
    elsewhere = line("python", tanh), line("pool", launch)
    assert shares_us(find(host(*elsewhere), gpu(line("Stream #1(Compute)", kernel)), profiled_us=(100, 500))) == {
        "host_operation": 300
    }


def test_checkpoints_are_a_cause_of_their_own():
    found = find(host(line("python", ("EagerLocalExecute: SaveV2", 100, 900))), gpu(kernels((0, 100), (1100, 100))))
    assert shares_us(found) == {"checkpoint": 900, "python": 100}


def test_without_a_training_thread_the_rest_is_unknown():
    assert shares_us(find(gpu(kernels((0, 10), (60, 10))))) == {"unknown": 50}


def test_each_device_has_its_own_gaps():
    found = find(gpu(kernels((0, 50))), gpu(kernels((50, 50)), number=1))
    assert [(device.name, device.busy_ns, device.idle_ns) for device in found.devices] == [
        ("/device:GPU:0", 50_000, 50_000),
        ("/device:GPU:1", 50_000, 50_000),
    ]


def test_a_trace_without_any_work_is_said():
    with pytest.raises(TraceIncompleteError, match="No device work"):
        find(host(line("python", ("TFE_Py_Execute", 0, 10))))


def test_short_gaps_beyond_the_limit_stay_in_the_totals(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(idle_gaps, "LONGEST_GAPS", 2)
    found = find(gpu(kernels((0, 10), (11, 10), (51, 10), (111, 10))))  # gaps of 1, 30 and 50
    assert rows(found) == [(21, 30, "unknown"), (61, 50, "unknown")]
    assert (found.gaps_left_out, found.left_out_ns, found.idle_ns) == (1, 1_000, 81_000)
    # two of the four equal pieces of work are kept; the gap of 1 lies in a stretch of its own or with the work beside it
    assert_rows_fill(found, 0, 121_000)
    (stretch,) = found.mixed.to_pylist()
    assert (stretch["gaps"], stretch["idle_ns"]) == (1, 1_000)
    assert stretch["start_ns"] <= 10_000
    assert stretch["end_ns"] in (11_000, 21_000)


def assert_rows_fill(found: IdleGaps, start: int, end: int) -> None:
    """Gaps, work and stretches of short gaps follow one another without overlap or hole."""
    spans = [(row["start_ns"], row["start_ns"] + row["duration_ns"]) for row in found.gaps.to_pylist()]
    spans += [(row["start_ns"], row["end_ns"]) for table in (found.busy, found.mixed) for row in table.to_pylist()]
    edges = sorted(spans)
    assert edges[0][0] == start
    assert edges[-1][1] == end
    assert all(before[1] == after[0] for before, after in itertools.pairwise(edges))


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), min_size=1, max_size=30), st.integers(1, 8))
def test_whatever_is_left_out_nothing_idle_is_called_work(lengths: list[tuple[int, int]], limit: int):
    spans, at = [], 0
    for work, gap in lengths:
        spans.append((at, work))
        at += work + gap
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_gaps, "LONGEST_GAPS", limit)
        found = find(gpu(kernels(*spans)), profiled_us=(0, at))
    assert_rows_fill(found, 0, at * 1000)
    kept_ns = sum(row["duration_ns"] for row in found.gaps.to_pylist())
    mixed = found.mixed.to_pylist()
    assert kept_ns + sum(row["idle_ns"] for row in mixed) == found.idle_ns
    assert sum(row["gaps"] for row in mixed) == found.gaps_left_out
    assert len(mixed) <= 2 * limit + 1


def window(number: int, at_us: int) -> IdleGaps:
    return tables.place(find(gpu(kernels((0, 10), (20, 10)))), number, at_us * 1000)


def merge(parts: Sequence[IdleGaps], *, capture_gaps: bool) -> IdleGaps:
    merged = idle_gaps.merge_gaps(parts)
    return idle_gaps.add_capture_gaps(merged) if capture_gaps else merged


def test_the_time_between_windows_is_a_capture_gap_and_no_idle_time():
    merged = merge([window(0, 0), window(1, 100)], capture_gaps=True)
    assert rows(merged) == [(10, 10, "unknown"), (30, 70, "capture_gap"), (110, 10, "unknown")]
    assert merged.gaps.column("window").to_pylist() == [0, None, 1]
    assert (merged.idle_ns, shares_us(merged)) == (20_000, {"capture_gap": 70, "unknown": 20})
    assert sum(merged.idle_by_cause_ns.values()) == merged.idle_ns
    assert (merged.unrecorded_ns, merged.inside.column("window").to_pylist()) == (70_000, [0, 1])


def test_time_without_the_profiler_is_counted_once_for_all_devices():
    both = [
        tables.place(find(gpu(kernels((0, 10))), gpu(kernels((0, 10)), number=1)), number, at_us * 1000)
        for number, at_us in enumerate((0, 100))
    ]
    merged = merge(both, capture_gaps=True)
    assert (merged.unrecorded_ns, merged.idle_ns) == (90_000, 0)


def test_windows_without_a_common_clock_have_no_capture_gap():
    assert shares_us(idle_gaps.merge_gaps([window(0, 0), window(1, 100)])) == {"unknown": 20}


@given(st.permutations(range(4)), st.booleans())
@pytest.mark.slow
def test_merge_does_not_mind_the_order(order: list[int], capture_gaps: bool):
    parts = [window(number, 100 * number) for number in range(4)]
    straight = merge(parts, capture_gaps=capture_gaps)
    turned = merge([parts[index] for index in order], capture_gaps=capture_gaps)
    again = merge([straight], capture_gaps=capture_gaps)
    for other in (turned, again):
        assert other.gaps.equals(straight.gaps)
        assert other.busy.equals(straight.busy)
        assert (other.devices, other.by_cause_ns) == (straight.devices, straight.by_cause_ns)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 60), st.sampled_from([0, 1])), min_size=1, max_size=8))
def test_windows_one_after_another_give_what_all_at_once_give(landing: list[tuple[int, int]]):
    parts, sofar, at_us = [], None, 0
    for number, (later_us, device) in enumerate(landing):
        at_us += later_us  # windows of two devices may overlap
        one = find(gpu(kernels((0, 10), (20, 10)), number=device))
        parts.append(tables.place(one, number, at_us * 1000))
        sofar = idle_gaps.add_capture_gaps(idle_gaps.merge_gaps(parts), sofar)
        whole = idle_gaps.add_capture_gaps(idle_gaps.merge_gaps(parts))
        assert sofar.gaps.sort_by(ORDER).equals(whole.gaps.sort_by(ORDER))
        assert sofar.by_cause_ns == whole.by_cause_ns


ORDER = [("start_ns", "ascending"), ("device", "ascending"), ("window", "ascending")]
spans = st.lists(st.tuples(st.integers(0, 900), st.integers(0, 300)), max_size=6)


@st.composite
def captures(draw: st.DrawFn) -> Trace:
    """Draw a trace with every kind of event at any time."""
    names = ("EagerExecute", WAIT, "tf.function-graph_building", "EagerLocalExecute: SaveV2", "EagerLocalExecute: Sum")
    python: list[Event] = [(name, *span) for name in names for span in draw(spans)]
    python += [("train", 200 * number, 190, {"step_num": number, "_r": 1}) for number in range(draw(st.integers(0, 4)))]
    others = [("a/b:Conv2D", *span) for span in draw(spans)] + [(PROCESS, *span) for span in draw(spans)]
    planes = [host(line("python", *python), line("tf_Compute/1", *others))]
    if draw(st.booleans()):
        copies = line("Stream #2(MemcpyH2D)", *(("MemcpyH2D", *span) for span in draw(spans)))
        planes.append(gpu(kernels(*draw(spans)), copies))
    return trace(*planes, profiled_us=(0, 1000))


@settings(max_examples=60)
@given(captures())
@pytest.mark.slow
def test_busy_and_idle_fill_the_window_and_shares_add_up(captured: Trace):
    activity = Activity(captured)
    if not len(activity.busy):
        return
    found = idle_gaps.find_gaps(activity)
    start, end = activity.extent
    for device in found.devices:
        assert device.busy_ns + device.idle_ns == end - start
    assert sum(found.by_cause_ns.values()) == found.idle_ns
    table = found.gaps
    shares = np.stack([tables.ints(table, f"{cause.value}_ns") for cause in GapCause])
    assert (shares >= 0).all()
    assert (shares.sum(axis=0) == tables.ints(table, "duration_ns")).all()
    for cause, share in zip(GapCause, shares, strict=True):
        assert share.sum() == found.by_cause_ns[cause]
    lengths = dict(
        zip(tables.ints(table, "start_ns").tolist(), tables.ints(table, "duration_ns").tolist(), strict=False)
    )
    for row in found.operations.to_pylist():
        assert 0 < row["time_ns"] <= lengths[row["start_ns"]]


@settings(max_examples=60)
@given(captures())
@pytest.mark.slow
def test_the_breakdown_adds_up_to_the_steps(captured: Trace):
    activity = Activity(captured)
    try:
        found = recorded_steps.find_steps(activity)
    except TraceIncompleteError:
        return
    breakdown = step_breakdown.divide_steps(activity, found)
    assert breakdown.total_ns == found.length_ns.sum()
    parts = np.stack([tables.ints(breakdown.table, part) for part in PARTS])
    assert (parts >= 0).all()
    assert (parts.sum(axis=0) == found.length_ns).all()
    assert (tables.ints(breakdown.table, "input_wait_ns") == tables.ints(found.table, "exposed_ns")).all()
    assert step_breakdown.merge_breakdowns([breakdown]).parts_ns == breakdown.parts_ns


def test_the_breakdown_of_one_step():
    # 0–100: wait 10–40, copy 35–50, kernels 50–80 with a collective 70–90, launch 0–60
    marker = ("train", 0, 100, {"step_num": 3, "_r": 1})
    activity = Activity(
        trace(
            host(line("python", marker, ("EagerExecute", 0, 60), (WAIT, 10, 30))),
            gpu(
                kernels((50, 30)),
                line("Stream #2", ("MemcpyH2D", 35, 15)),
                line("Stream #3", ("ncclAllReduce", 70, 20)),
                line("Stream #4", ("MemcpyD2H", 85, 10)),
            ),
        )
    )
    found = step_breakdown.divide_steps(activity, recorded_steps.find_steps(activity))
    assert {name: length / 1000 for name, length in found.parts_ns.items() if length} == {
        "input_wait_ns": 30,
        "host_to_device_ns": 10,
        "device_compute_ns": 30,
        "device_copy_ns": 5,
        "collective_ns": 10,
        "dispatch_ns": 10,
        "python_ns": 5,
    }


def test_causes_are_tried_in_the_order_in_which_they_are_listed():
    assert list(GapCause)[:3] == [GapCause.CAPTURE_GAP, GapCause.INPUT_WAIT, GapCause.HOST_TO_DEVICE]
    everything = [(WAIT, 0, 50), ("tf.function-graph_building", 0, 60), ("EagerExecute", 0, 70)]
    idle = gap_causes.attribute(
        Activity(trace(host(line("python", *everything)), gpu(kernels((90, 10))))), np.array([[90_000, 100_000]])
    )
    lengths = {
        cause.value: int((moments[:, 1] - moments[:, 0]).sum()) // 1000 for cause, moments in idle.causes.items()
    }
    assert {cause: length for cause, length in lengths.items() if length} == {
        "input_wait": 50,
        "compile": 10,
        "dispatch": 10,
        "python": 20,
    }
