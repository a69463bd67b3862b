"""What the profiler could not record, and what recording adds to the steps; times of written traces in µs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline_lab.analysis.causes import StepPart, VerdictClass
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.steps.iterator_ends import IteratorEnds
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.analysis.steps.step_breakdown import PARTS, PARTS_TABLE, StepBreakdown
from pipeline_lab.analysis.verdict.findings import find_all_findings
from pipeline_lab.analysis.verdict.judged_parts import judged_parts_ns, name_parts_basis
from pipeline_lab.analysis.verdict.recording_effects import (
    find_recording_cost,
    find_remedy,
    like_all_steps,
    name_left_out,
)
from pipeline_lab.analysis.verdict.verdict import Confidence
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.run_folder import RunFolder, add_environment
from tests.analysis.verdict.test_verdict_rules import divided, in_windows, judged
from tests.support import results
from tests.support.recorded_run import write_run
from tests.support.xspace import XSpace

PRIVILEGE = "Insufficient privilege to run libcupti (you need root permission)."
DROPPED = "GPU events dropped: 1234 activity events exceed the limit"


def write(path: Path, allocator: str, *, wait: int = 0, device: bool = False, space: XSpace | None = None) -> Path:
    """Write four steps of 10 ms whose host part is short, on a job that takes memory from an allocator."""
    space = space or XSpace()
    plane = space.plane("/host:CPU")
    python = plane.line("python")
    for step in range(4):
        at = step * 10_000
        python.event("train", at, 10_000, step_num=step, _r=1)
        python.event("MemoryAllocation", at, 0, allocator_name=allocator, bytes_allocated=10, peak_bytes_in_use=10)
        if wait:
            python.event("IteratorGetNextOp::DoCompute", at, wait)
        python.event("EagerExecute: step", at + wait, 900)
    if device:
        space.plane("/device:GPU:0").line("Stream #1(Compute)").event("kernel", 0, 39_000)
    return space.write(path / "h.xplane.pb")


def kinds(path: Path) -> list[str]:
    return [finding.kind for finding in diagnose(path).findings]


def test_memory_of_a_device_without_its_work_is_a_missing_plane(tmp_path: Path):
    assert "device-plane-missing" in kinds(write(tmp_path / "bfc", "GPU_0_bfc"))
    assert "device-plane-missing" in kinds(write(tmp_path / "async", "gpu_async_0"))
    assert "device-plane-missing" not in kinds(write(tmp_path / "seen", "GPU_0_bfc", device=True))
    assert "device-plane-missing" not in kinds(write(tmp_path / "host", "cpu"))


def test_launches_without_device_events_are_no_missing_plane_but_where_the_profiler_says_so(tmp_path: Path):
    def launching(space: XSpace, path: Path) -> list[str]:
        space.plane("/host:CUPTI").line("7").event("cuLaunchKernel", 5, 1, correlation_id=1)
        return kinds(write(path, "GPU_0_bfc", space=space))

    assert "device-plane-missing" not in launching(XSpace(), tmp_path / "far ahead")
    assert "device-plane-missing" in launching(XSpace().complain(error=PRIVILEGE), tmp_path / "refused")


@pytest.mark.slow
def test_a_run_on_a_gpu_of_which_nothing_was_recorded_lacks_its_plane(tmp_path: Path):
    folder = write_run(tmp_path / "run")
    assert "device-plane-missing" not in kinds(folder.path)
    add_environment(RunFolder(folder.path), {"device": "GPU 0: NVIDIA H200"})
    assert "device-plane-missing" in kinds(folder.path)


def test_host_compute_does_not_stand_for_a_device_that_was_not_recorded(tmp_path: Path):
    found = diagnose(write(tmp_path, "GPU_0_bfc"))
    assert isinstance(found.idle_gaps, Unavailable)
    assert "Let the profiler use CUPTI" in found.idle_gaps.reason


def test_without_the_device_only_waits_for_input_are_judged(tmp_path: Path):
    waiting = diagnose(write(tmp_path / "waiting", "GPU_0_bfc", wait=6_000)).verdict
    assert (waiting.verdict_class, waiting.confidence) == (VerdictClass.INPUT_BOUND, Confidence.LOW)
    busy = diagnose(write(tmp_path / "busy", "GPU_0_bfc")).verdict
    assert busy.verdict_class is VerdictClass.UNKNOWN
    assert "nothing was recorded of what its device did" in busy.sentence


def test_what_the_profiler_complains_about_is_read_and_shown_once(tmp_path: Path):
    space = XSpace().complain(error=PRIVILEGE).complain(error=PRIVILEGE).complain(warning=DROPPED)
    found = diagnose(write(tmp_path, "GPU_0_bfc", space=space))
    assert (found.source.errors, found.source.warnings) == ((PRIVILEGE,), (DROPPED,))
    assert found.to_json()["source"]["errors"] == [PRIVILEGE]
    said = {finding.kind: finding.sentence for finding in found.findings}
    assert said["profiler-error"].startswith(f"The profiler reports an error: {PRIVILEGE} Let the profiler use CUPTI:")
    assert said["profiler-warning"] == f"The profiler warns: {DROPPED}. {find_remedy(DROPPED)}"


def test_the_first_complaint_is_the_sentence_and_the_others_are_evidence():
    source = replace(results.diagnosis().source, errors=("One\nthing.", "Another thing."))
    (found,) = (one for one in find_all_findings(results.diagnosis(source=source)) if one.kind == "profiler-error")
    assert found.sentence == "The profiler reports an error: One thing."
    assert [(one.name, one.value) for one in found.evidence] == [("also", "Another thing.")]


def test_steps_that_were_cut_off_are_told():
    many, one = (
        replace(results.steps(), cut_off=2),
        replace(results.steps(), table=results.steps().table[:1], cut_off=1),
    )
    (found,) = (each for each in find_all_findings(results.diagnosis(steps=many)) if each.kind == "cut-off-steps")
    assert found.sentence.startswith("2 steps that began in the windows had not ended on the device")
    (found,) = (each for each in find_all_findings(results.diagnosis(steps=one)) if each.kind == "cut-off-steps")
    assert found.sentence.startswith("The device still worked on the only step")


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        (PRIVILEGE, "NVreg_RestrictProfilingToAdminUsers=0"),
        ("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", "Another profiler"),
        (DROPPED, "shorter windows"),
        ("Failed to load libcupti (is it installed and accessible?)", "libcupti"),
        ("All is well", ""),
    ],
)
def test_known_complaints_come_with_what_to_do(message: str, remedy: str):
    assert remedy in find_remedy(message)
    assert bool(remedy) == bool(find_remedy(message))


def slower_while_recorded(recorded_ms: float, plain_ms: float) -> JobSteps:
    """Return steps of a job that wait for nothing."""
    job = results.job_steps()
    step_ns = np.where(tables.bools(job.table, "profiled"), recorded_ms, plain_ms) * results.MS
    table = tables.replace_column(job.table, "step_ns", step_ns.astype(np.int64))
    table = tables.replace_column(table, "wait_ns", np.zeros_like(table.column("step").to_numpy()))
    measured = step_ns[~tables.bools(table, "warmup")]
    return replace(job, table=table, total_ns=int(measured.sum()), wait_total_ns=0)


def test_what_the_profiler_adds_to_the_launch_of_ops_is_not_the_jobs():
    # of 50 ms that a recorded step takes 30 are the device's; the others take 33
    slow, job = divided(dispatch=40, device_compute=60), slower_while_recorded(50, 33)
    unhurried = in_windows(waiting=0, calling=0)
    assert judged(slow, job_steps=job, input_stalls=unhurried).sentence.startswith(
        "Input is not the limit: the device is busy for 90.9 % of each 33 ms step"
    )
    tiny = judged(divided(dispatch=80, device_compute=20), job_steps=job, input_stalls=unhurried)
    assert tiny.verdict_class is VerdictClass.DISPATCH_BOUND
    assert "for 23 ms of each 33 ms step (69.7 %)" in tiny.sentence
    on_the_host = judged(divided(dispatch=40, host_compute=60), job_steps=job, input_stalls=unhurried)
    assert on_the_host.lost_percent == pytest.approx(40)  # there the profiler takes from the step's own ops too


def test_the_picture_leaves_out_what_recording_adds():
    # of 25 ms that a recorded step takes 15 are ops' own; the others take 16.5
    def parts_ms(breakdown: StepBreakdown) -> dict[StepPart, float]:
        diagnosis = results.diagnosis(step_breakdown=breakdown, job_steps=slower_while_recorded(25, 16.5))
        assert name_parts_basis(diagnosis, None) == "Mean of 40 recorded steps (without what recording adds)."
        parts = judged_parts_ns(diagnosis)
        assert not isinstance(parts, Unavailable)
        return {part: length_ns / results.MS for part, length_ns in parts.items()}

    launched = parts_ms(divided(dispatch=40, device_compute=60))
    assert launched == {StepPart.DISPATCH: pytest.approx(1.5), StepPart.DEVICE_COMPUTE: pytest.approx(15)}
    on_the_host = parts_ms(divided(dispatch=40, host_compute=60))
    assert on_the_host == {
        StepPart.DISPATCH: pytest.approx(0.4 * 16.5),
        StepPart.HOST_COMPUTE: pytest.approx(0.6 * 16.5),
    }


def test_steps_of_two_kinds_of_which_recording_holds_other_shares_are_not_slowed_by_it():
    job = slower_while_recorded(50, 33)
    profiled = tables.bools(job.table, "profiled")
    kinds = np.arange(job.table.num_rows) % 8
    mostly_long, mostly_short = np.where(kinds < 3, 10, 100), np.where(kinds < 5, 10, 100)
    step_ns = np.where(profiled, mostly_long, mostly_short) * results.MS
    job = replace(job, table=tables.replace_column(job.table, "step_ns", step_ns.astype(np.int64)))
    assert find_recording_cost(results.diagnosis(job_steps=job)) is None


def test_recorded_steps_that_recording_could_explain_altogether_leave_no_negative_time():
    job = slower_while_recorded(50, 0)
    found = judged(divided(host_compute=90, dispatch=10), job_steps=job, input_stalls=in_windows(waiting=0, calling=0))
    assert found.verdict_class is VerdictClass.DEVICE_BOUND


@pytest.mark.parametrize(("others", "compile_ms"), [(0, 0.0), (2, 62.2), (100, 490.0)])
def test_compiling_counts_as_often_as_steps_are_as_long(others: int, compile_ms: float):
    """Of 12 recorded steps of 10 ms one compiles for 490 ms more; so may some of the 194 others."""
    compiling = np.array([490, *[0] * 11]) * results.MS
    ends = np.cumsum(compiling + 10 * results.MS)
    parts = {**dict.fromkeys(PARTS, 0), "compile_ns": compiling, "host_compute_ns": 10 * results.MS}
    times = {"start_ns": ends - compiling - 10 * results.MS, "end_ns": ends}
    table = tables.build(PARTS_TABLE, 12, host="a", window=0, step=np.arange(12), **times, **parts)
    breakdown = replace(divided(), table=table, compile_ns=int(compiling.sum()), host_compute_ns=120 * results.MS)
    job = results.job_steps()
    step_ns = np.where(np.arange(200) >= 200 - others, 500, 10) * results.MS
    job = replace(job, table=tables.replace_column(job.table, "step_ns", step_ns))
    diagnosis = results.diagnosis(step_breakdown=breakdown, job_steps=job)
    like_all = like_all_steps(diagnosis, breakdown)
    assert like_all.compile_ns / results.MS == pytest.approx(compile_ms, abs=0.5)
    assert like_all.host_compute_ns == breakdown.host_compute_ns
    left_out = "most of the compiling, which few other steps do" if others < 100 else ""
    assert name_left_out(diagnosis, breakdown) == left_out


def test_without_a_device_all_steps_tell_the_waits_where_recording_slows_the_rest():
    """A recorded step computes for 50 ms and waits for 2; the others compute for 33 and wait for 6."""
    job = slower_while_recorded(52, 39)
    profiled, measured = (tables.bools(job.table, name) for name in ("profiled", "warmup"))
    wait_ns = np.where(profiled, 2, 6) * results.MS
    waited_ns = int(wait_ns[~measured].sum())
    job = replace(job, table=tables.replace_column(job.table, "wait_ns", wait_ns), wait_total_ns=waited_ns)
    parts, stalls = divided(host_compute=96, input_wait=4), in_windows(waiting=4, calling=4)
    of_all = 100 * waited_ns / job.total_ns
    assert 11 < of_all < 14, "less than 10 points from 4, by which windows may differ otherwise"
    assert judged(parts, job_steps=job, input_stalls=stalls).lost_percent == pytest.approx(of_all)
    beside_a_device = judged(divided(device_compute=96, input_wait=4), job_steps=job, input_stalls=stalls)
    assert beside_a_device.verdict_class is VerdictClass.DEVICE_BOUND


def test_without_a_device_ends_of_iterators_count_as_the_job_timed_them():
    """Recorded steps are as long as all are on average, for recording slows them: only the job's own times tell of the ends."""
    recorded_ns = float(results.steps().training_step_ns.mean())
    job = replace(
        results.job_steps(), count=100, total_ns=round(100 * recorded_ns), wait_total_ns=0, call_total_ns=None
    )
    ends = IteratorEnds(5, round(0.3 * job.total_ns), 10**8, job.total_ns)
    changes = {"job_steps": job, "iterator_ends": ends, "input_stalls": in_windows(waiting=0, calling=0)}
    verdict = judged(divided(host_compute=100), **changes)
    assert (verdict.verdict_class, verdict.cause) == (VerdictClass.IDLE_OTHER, "iterator_end")
    assert verdict.lost_percent == pytest.approx(30)
    assert judged(divided(device_compute=100), **changes).verdict_class is VerdictClass.DEVICE_BOUND
