"""The reasons follow from the trace: the same traces go through our diagnosis, through XProf, and side by side."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_lab.analysis.causes import VerdictClass
from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.steps.recorded_steps import STEP_TABLE, Steps
from pipeline_lab.analysis.xprof.xprof import XprofAnswer, ask_xprof
from pipeline_lab.analysis.xprof.xprof_comparison import UNEXPLAINED, XprofDifference, compare_with_xprof
from pipeline_lab.analysis.xprof.xprof_facts import TraceFacts, find_facts
from pipeline_lab.errors import Unavailable
from pipeline_lab.trace.schema import Salvage
from pipeline_lab.trace.xplane.xspace import read_xplane
from tests.support import results
from tests.support.xspace import XSpace

MS = 1_000_000
NOTHING = TraceFacts("", (), {}, False)
# What XProf would say of the hand-built diagnosis if it agreed: 40 steps of 50 ms that wait 30 ms.
AGREEING = XprofAnswer(
    version="2.24.2",
    hardware="GPU",
    steps=40,
    step_ns=50 * MS,
    input_ns=30 * MS,
    input_percent=60.0,
    verdict="Your program is HIGHLY input-bound because 60.0% of the total step time sampled is waiting for input.",
    statement="",
    warnings=(),
    offers=("tf_data_bottleneck_analysis",),
    seconds=1.0,
    tool_seconds={},
    peak_rss_bytes=1,
)


def rows(
    answer: XprofAnswer | Unavailable, facts: TraceFacts = NOTHING, **changes: object
) -> dict[str, XprofDifference]:
    found = compare_with_xprof(results.diagnosis(**changes), answer, facts)
    return {row.quantity: row for row in found}


def side_by_side(path: Path) -> dict[str, XprofDifference]:
    found = compare_with_xprof(diagnose(path), ask_xprof([path]), find_facts([read_xplane(path)]))
    return {row.quantity: row for row in found}


def write_steps(path: Path, *, gpu: bool = False, send: bool = False, loop: bool = False) -> Path:
    """Write four steps of 1 ms: 300 µs of waiting, then 600 µs of work on host or GPU."""
    space = XSpace()
    python = space.plane("/host:CPU").line("python")
    stream = space.plane("/device:GPU:0").line("Stream #14(Kernel)") if gpu else None
    for step in range(4):
        at = 1000 * step
        python.event("train", at, 1000, step_num=step, _r=1)
        python.event("IteratorGetNextOp::DoCompute", at, 300)
        python.event("Iterator::Root::Prefetch", at, 290)
        if send:
            python.event("IteratorGetNext/_3:_Send", at + 900, 50)
        if loop:
            python.event("ExecutorState::Process", at + 300, 600, id=7 + step, iter_num=step)
        if stream:
            python.event("cuLaunchKernel", at + 295, 4, correlation_id=step + 1)
            stream.event("volta_sgemm_64x64_nn", at + 300, 600, correlation_id=step + 1)
        else:
            python.event("dense/MatMul:MatMul", at + 300, 600)
    return space.write(path)


def test_where_both_agree_nothing_is_explained() -> None:
    found = rows(AGREEING)
    assert [row.reasons for row in found.values()] == [()] * len(found)
    assert found["steps"].ours == "40, marked by Trace 'train' (step_num)"
    assert (found["input share of the steps"].ours, found["input share of the steps"].xprof) == ("60 %", "60 %")
    assert found["tf.data stage at fault"].ours == "map"


def test_a_device_hides_the_wait_from_xprof() -> None:
    blind = replace(AGREEING, input_ns=0, input_percent=0.0, verdict="is POTENTIALLY input-bound because")
    found = rows(blind, replace(NOTHING, devices=("/device:GPU:0",)))
    for quantity in ("input wait per step (mean)", "input share of the steps"):
        (reason,) = found[quantity].reasons
        assert "only where there is no device; here is /device:GPU:0" in reason
    assert found["verdict"].reasons == ("It follows from its numbers above.",)


def test_without_a_device_a_missing_wait_is_not_blamed_on_one() -> None:
    found = rows(replace(AGREEING, hardware="CPU_ONLY", input_ns=0, input_percent=0.0))
    assert found["input wait per step (mean)"].reasons == (UNEXPLAINED,)


def test_transfers_that_xprof_takes_for_waits_are_named() -> None:
    facts = replace(NOTHING, input_names_ns={"IteratorGetNext/_3:_Send": 400 * MS, "IteratorGetNextSync": 1200 * MS})
    found = rows(replace(AGREEING, input_ns=40 * MS, input_percent=80.0), facts)
    (reason,) = found["input wait per step (mean)"].reasons
    assert "here also IteratorGetNext/_3:_Send (400 ms in all)" in reason
    assert "IteratorGetNextSync" not in reason


def test_waits_that_xprof_does_not_know_are_named() -> None:
    stalls = replace(results.input_stalls(), event_names=("MultiDeviceIteratorGetNextFromShardOp::DoCompute",))
    found = rows(replace(AGREEING, input_ns=MS, input_percent=2.0), input_stalls=stalls)
    assert (
        "here MultiDeviceIteratorGetNextFromShardOp::DoCompute waits too"
        in found["input wait per step (mean)"].reasons[0]
    )


def test_on_a_tpu_the_two_measure_different_things() -> None:
    found = rows(replace(AGREEING, hardware="TPU", input_ns=0), replace(NOTHING, devices=("/device:TPU:0",)))
    assert "counts the device's infeed" in found["input wait per step (mean)"].reasons[0]


def test_a_loop_explains_lost_steps_only_if_there_is_one() -> None:
    lost = replace(
        AGREEING,
        steps=0,
        step_ns=None,
        input_ns=None,
        input_percent=None,
        verdict="No step time measured.",
        warnings=("No step marker observed and hence unknown. This may happen if",),
    )
    warning = "XProf warns: No step marker observed and hence unknown."
    source = replace(results.diagnosis().source, windows=1)
    assert rows(lost, source=source)["steps"].reasons == (warning,)
    found = rows(lost, replace(NOTHING, loop="WhileOp-StartBody"), source=source)
    assert found["steps"].reasons[0].startswith("A loop runs inside the steps (WhileOp-StartBody)")
    assert found["steps"].reasons[1] == warning
    for quantity in ("step time (mean)", "input share of the steps", "verdict"):
        assert found[quantity].reasons == ("XProf found no steps, and has no numbers without.",)


def test_steps_of_keras_and_of_a_rhythm_are_none_to_xprof() -> None:
    lost = replace(AGREEING, steps=0, step_ns=None, input_ns=None, input_percent=None, verdict="No step time measured.")
    for marker in ("Keras 'Profiled batch' (step_num)", "rhythm of IteratorGetNextOp::DoCompute"):
        found = rows(lost, steps=replace(results.steps(), marker=marker))
        assert found["steps"].reasons[0].startswith("XProf takes only events with _r=1 for step markers")
    assert "_r=1" not in rows(lost)["steps"].reasons[0]


def test_windows_are_taken_for_hosts() -> None:
    fewer = replace(AGREEING, steps=10)
    assert "takes the 4 windows for 4 hosts" in rows(fewer)["steps"].reasons[0]
    source = replace(results.diagnosis().source, windows=1)
    assert rows(fewer, source=source)["steps"].reasons == (UNEXPLAINED,)


def test_steps_that_share_a_number_are_one_to_xprof() -> None:
    two = [
        {
            "host": "h",
            "window": 0,
            "step": 0,
            "start_ns": start,
            "end_ns": end,
            "wait_ns": 0,
            "exposed_ns": 0,
            "busy_ns": 0,
        }
        for start, end in ((0, 20), (90, 111))
    ]
    table = pa.Table.from_pylist(two, schema=STEP_TABLE)
    source = replace(results.diagnosis().source, windows=1)
    steps = Steps("device Steps line", None, table, first_step_only=False)
    found = rows(replace(AGREEING, steps=1), source=source, steps=steps)
    assert "one step of all that share a number" in found["steps"].reasons[0]


def made_steps(*spans: tuple[str, int, int, int]) -> Steps:
    """Return steps given as (host, number, start in ms, end in ms)."""
    zeros = dict.fromkeys(("window", "wait_ns", "exposed_ns", "busy_ns"), 0)
    made = [
        {"host": host, "step": step, "start_ns": start * MS, "end_ns": end * MS, **zeros}
        for host, step, start, end in spans
    ]
    return Steps("Trace 'train' (step_num)", None, pa.Table.from_pylist(made, schema=STEP_TABLE), first_step_only=False)


def test_of_more_than_five_steps_xprof_drops_both_ends() -> None:
    six = made_steps(*(("h", number, 10 * number, 10 * number + 10) for number in range(6)))
    source = replace(results.diagnosis().source, windows=1)
    found = rows(replace(AGREEING, hardware="CPU_ONLY", steps=4, step_ns=10 * MS), source=source, steps=six)
    assert found["steps"].reasons == ("Of more than 5 steps XProf leaves out the first and the last.",)
    shorter = rows(replace(AGREEING, hardware="CPU_ONLY", steps=4, step_ns=2 * MS), source=source, steps=six)
    assert "what passes between two markers" in shorter["step time (mean)"].reasons[1]
    five = made_steps(*(("h", number, 10 * number, 10 * number + 10) for number in range(5)))
    assert rows(replace(AGREEING, steps=3), source=source, steps=five)["steps"].reasons == (UNEXPLAINED,)


def test_of_two_hosts_xprof_shows_one() -> None:
    two = made_steps(
        *(
            (host, number, 50 * number, 50 * number + length)
            for number in range(3)
            for host, length in (("a", 10), ("b", 30))
        )
    )
    source = replace(results.diagnosis().source, windows=1)
    found = rows(replace(AGREEING, hardware="CPU_ONLY", steps=3, step_ns=30 * MS), source=source, steps=two)
    assert found["steps"].reasons == ("XProf counts what 2 hosts do under one number as one step.",)
    assert "by its times b" in found["step time (mean)"].reasons[1]


def test_other_steps_have_other_means() -> None:
    found = rows(replace(AGREEING, steps=10, step_ns=90 * MS))
    assert found["step time (mean)"].reasons == ("The two are means over different steps.",)


@pytest.mark.parametrize(
    ("hardware", "step_ms", "reason"),
    [
        ("GPU", 20, "from its first to its last kernel"),
        ("CPU_ONLY", 20, "is the marked interval"),
        ("CPU_ONLY", 90, UNEXPLAINED),
    ],
)
def test_step_times_are_told_apart(hardware: str, step_ms: int, reason: str) -> None:
    found = rows(
        replace(AGREEING, hardware=hardware, step_ns=step_ms * MS), replace(NOTHING, devices=("/device:GPU:0",))
    )
    assert reason in found["step time (mean)"].reasons[0]


def test_a_small_share_is_no_verdict_of_ours() -> None:
    verdict = replace(results.verdict(), verdict_class=VerdictClass.DEVICE_BOUND)
    assert "once 5 % of the step is input" in rows(AGREEING, verdict=verdict)["verdict"].reasons[0]


def test_what_we_could_not_measure_carries_our_reason() -> None:
    found = rows(AGREEING, steps=Unavailable("No steps in this trace."), input_stalls=Unavailable("No waits."))
    assert found["steps"].reasons == ("No steps in this trace.",)
    assert found["step time (mean)"].ours == "not measured"
    assert found["step time (mean)"].reasons == ("No steps in this trace.",)


def test_no_answer_is_said_with_its_reason() -> None:
    silence = Unavailable("XProf returned nothing.")
    (row,) = compare_with_xprof(results.diagnosis(), silence, NOTHING)
    assert (row.xprof, row.reasons) == ("no answer", ("XProf returned nothing.",))
    damaged = replace(results.diagnosis().source, salvaged=Salvage(9, 5, "cut off at byte 90."))
    (row,) = compare_with_xprof(results.diagnosis(source=damaged), silence, NOTHING)
    assert "cut off at byte 90." in row.reasons[1]


def test_facts_of_a_trace(tmp_path: Path) -> None:
    facts = find_facts([read_xplane(write_steps(tmp_path / "a.xplane.pb", gpu=True, send=True, loop=True))])
    assert facts.devices == ("/device:GPU:0",)
    assert facts.input_names_ns == {"IteratorGetNextOp::DoCompute": 1_200_000, "IteratorGetNext/_3:_Send": 200_000}
    assert facts.loop == "ExecutorState::Process with iter_num up to 3"
    assert facts.has_tf_data


def test_facts_of_several_traces_add_up(tmp_path: Path) -> None:
    plain = read_xplane(write_steps(tmp_path / "a.xplane.pb"))
    assert find_facts([plain, plain]).input_names_ns == {"IteratorGetNextOp::DoCompute": 2_400_000}
    assert find_facts([]) == NOTHING


def test_a_loop_inside_tf_data_is_none_of_the_steps(tmp_path: Path) -> None:
    space = XSpace()
    pool = space.plane("/host:CPU").line("tf_data_private_threadpool")
    pool.event("InstantiatedCapturedFunction::RunAsync", 0, 1, id=9)
    pool.event("ExecutorState::Process", 1, 1, id=9, iter_num=5)
    assert find_facts([read_xplane(space.write(tmp_path / "a.xplane.pb"))]).loop == ""


@pytest.mark.slow
def test_a_plain_cpu_trace_side_by_side(tmp_path: Path) -> None:
    found = side_by_side(write_steps(tmp_path / "a.xplane.pb"))
    for quantity in ("steps", "step time (mean)", "input wait per step (mean)", "input share of the steps"):
        assert found[quantity].reasons == (), found[quantity]
    assert found["input wait per step (mean)"].xprof == "300 µs"
    assert "no tf.data bottleneck tool" in found["tf.data stage at fault"].reasons[0]


@pytest.mark.slow
def test_transfers_side_by_side(tmp_path: Path) -> None:
    row = side_by_side(write_steps(tmp_path / "a.xplane.pb", send=True))["input wait per step (mean)"]
    assert (row.ours, row.xprof) == ("300 µs", "350 µs")
    assert "IteratorGetNext/_3:_Send" in row.reasons[0]


@pytest.mark.slow
def test_a_gpu_side_by_side(tmp_path: Path) -> None:
    found = side_by_side(write_steps(tmp_path / "a.xplane.pb", gpu=True))
    wait, length = found["input wait per step (mean)"], found["step time (mean)"]
    assert (wait.ours, wait.xprof) == ("300 µs", "0 ns")
    assert "here is /device:GPU:0" in wait.reasons[0]
    assert (length.ours, length.xprof) == ("1 ms", "600 µs")
    assert "from its first to its last kernel" in length.reasons[0]
    assert "NOT input-bound" in found["verdict"].xprof


@pytest.mark.slow
def test_a_loop_side_by_side(tmp_path: Path) -> None:
    found = side_by_side(write_steps(tmp_path / "a.xplane.pb", loop=True))
    assert (found["steps"].xprof, found["step time (mean)"].xprof) == ("none", "not measured")
    assert "ExecutorState::Process with iter_num up to 3" in found["steps"].reasons[0]


@pytest.mark.reference_traces
@pytest.mark.slow
def test_a_real_gpu_capture_side_by_side(reference_traces: Path) -> None:
    (path,) = (reference_traces / "P1-gpu-multiworker-8gpu").rglob("*.xplane.pb")
    found = side_by_side(path)
    assert found["input wait per step (mean)"].xprof == "0 ns"
    assert "only where there is no device" in found["input wait per step (mean)"].reasons[0]
    assert (found["steps"].ours[:2], found["steps"].xprof) == ("2,", "1")
    assert "share a number" in found["steps"].reasons[0]
