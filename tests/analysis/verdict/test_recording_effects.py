"""What the profiler could not record; times in µs."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_lab.analysis.causes import VerdictClass
from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.verdict.findings import find_all_findings
from pipeline_lab.analysis.verdict.recording_effects import find_remedy
from pipeline_lab.analysis.verdict.verdict import Confidence
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.run_folder import RunFolder, add_environment
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
