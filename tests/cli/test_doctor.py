import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pipeline_lab.cli import checks
from pipeline_lab.cli.checks import Answers, Check, ask_tensorflow, gpu_checks, tensorflow_checks
from pipeline_lab.cli.quick_checks import quick_checks
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.machine.nvidia import Gpu
from pipeline_lab.runs.store import RunStore
from tests.cli.support import call
from tests.conftest import AskGpu
from tests.pretend_gpu import PretendGpu, read_ledger
from tests.support.patience import PATIENCE_S, unless_late

TRACE = {"planes": ["/host:CPU"], "gpu_events": 0, "errors": [], "warnings": [], "start_ms": 1.0}
CPU: Answers = {"devices": {"devices": ["CPU:0"], "names": [], "cuda": True}, "profile": TRACE}
GPU: Answers = {
    "devices": {"devices": ["CPU:0", "GPU:0"], "names": ["NVIDIA H200"], "cuda": True},
    "profile": TRACE | {"planes": ["/device:GPU:0", "/host:CPU"], "gpu_events": 3},
}
NO_DRIVER = Unavailable("NVIDIA's management library does not answer: not found.")


class NamedGpu(Gpu):
    name = "NVIDIA H200"


def told(answers: Answers, gpus: list[Gpu] | Unavailable = NO_DRIVER) -> dict[str, Check]:
    return {check.name: check for check in tensorflow_checks(answers, gpus)}


def answering(*answers: dict[str, Any], end: str = "") -> tuple[str, ...]:
    """Return a command that answers as the probe does."""
    lines = "\n".join(json.dumps(answer) for answer in answers)
    return (sys.executable, "-c", f"import sys, time; print({lines!r}, flush=True); {end}")


def test_a_sound_machine_passes_the_quick_checks(tmp_path: Path) -> None:
    found = {check.name: check for check in quick_checks(RunStore(tmp_path / "store"))}
    assert all(check.works for check in found.values() if check.needed and check.name != "Disk")
    assert set(found) >= {"Python", "TensorFlow package", "Run store", "Disk", "Queue", "Browser for the tests"}


def test_every_broken_check_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    broken = next(check for check in quick_checks(RunStore(tmp_path / "file" / "store")) if check.name == "Run store")
    assert not broken.works
    assert "--store or PIPELINE_LAB_STORE" in broken.advice


def test_a_machine_without_a_gpu_is_fine() -> None:
    found = told(CPU)
    assert found["GPU"] == Check("GPU", True, "none; jobs run on the CPU", needed=False)
    assert found["Profiler"].works
    assert "CUPTI" not in found


@pytest.mark.parametrize("gpus", [[NamedGpu()], NO_DRIVER])
def test_a_gpu_that_tensorflow_sees_and_traces_is_fine(gpus: list[Gpu] | Unavailable) -> None:
    found = told(GPU, gpus)
    assert (found["GPU"].found, found["GPU"].works, found["CUPTI"].works) == ("NVIDIA H200", True, True)


@pytest.mark.parametrize("cuda", [True, False])
def test_a_gpu_that_tensorflow_does_not_see_comes_with_advice(cuda: bool) -> None:
    devices = {"devices": ["CPU:0"], "names": [], "cuda": cuda}
    check = told({**CPU, "devices": devices}, [NamedGpu()])["GPU"]
    assert not check.works
    assert "NVIDIA H200, but TensorFlow does not see it" in check.found
    assert ("requirements-gpu.txt" in check.advice) or cuda
    assert check.advice


@pytest.mark.parametrize(
    ("trace", "found", "advice"),
    [
        ({"gpu_events": 0}, "no GPU events", "libcupti"),
        ({"gpu_events": 0, "errors": ["Insufficient privilege."]}, "says: Insufficient privilege", "SYS_ADMIN"),
        ({"warnings": ["17 events were dropped"]}, "3 GPU events; the profiler says: 17 events", "shorter windows"),
    ],
)
def test_what_cupti_could_not_do_is_told_with_advice(trace: dict[str, Any], found: str, advice: str) -> None:
    profile = GPU["profile"]
    assert isinstance(profile, dict)
    check = told({**GPU, "profile": profile | trace})["CUPTI"]
    assert not check.works
    assert found in check.found
    assert advice in check.advice


def test_a_tensorflow_that_does_not_start_is_told_and_ends_the_questions() -> None:
    found = told({"end": "it ended with exit code 1: ImportError: libx"})
    assert list(found) == ["TensorFlow starts"]
    assert found["TensorFlow starts"].found.endswith("ImportError: libx")


def test_a_failed_need_is_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(checks, "PROBE", (sys.executable, "-c", "import sys; sys.exit('no TensorFlow here')"))
    ended = call("doctor", "--json", "--store", tmp_path / "file" / "store")
    assert ended.exit_code == 1
    document = {check["name"]: check for check in json.loads(ended.stdout)}
    assert not document["Run store"]["works"]
    assert document["TensorFlow starts"]["found"] == "it ended with exit code 1: no TensorFlow here"


@pytest.mark.slow
def test_the_table_shows_found_and_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = answering(*({"name": name, "found": found} for name, found in CPU.items()))
    monkeypatch.setattr(checks, "PROBE", command)
    ended = call("doctor", "--store", tmp_path)
    assert ended.exit_code == 0
    assert "devices CPU:0" in ended.stdout
    assert call("doctor", "--gpu", "--store", tmp_path).exit_code == 1, "there is none"


@pytest.mark.slow
def test_a_probe_that_hangs_is_given_up_and_what_it_answered_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "PROBE", answering({"name": "devices", "found": {"a": 1}}, end="time.sleep(600)"))
    monkeypatch.setattr(checks, "BRIEF_TIMEOUT_S", 2)
    found = ask_tensorflow()
    assert found["end"] == "it did not end within 2 s"


def test_a_probe_that_hangs_is_no_crash_however_soon_its_end_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    told, kill = threading.Event(), subprocess.Popen.kill

    def kill_and_linger(process: "subprocess.Popen[str]") -> None:
        kill(process)
        told.wait(PATIENCE_S)

    monkeypatch.setattr(subprocess.Popen, "kill", kill_and_linger)
    monkeypatch.setattr(checks, "PROBE", answering(end="time.sleep(600)"))
    monkeypatch.setattr(checks, "BRIEF_TIMEOUT_S", 0.1)
    try:
        assert ask_tensorflow()["end"] == "it did not end within 0.1 s"
    finally:
        told.set()


MEASURED: Answers = {
    "copies": {"bytes": 64_000_000, "to_device_ms": 8.0, "to_host_ms": 16.0},
    "overlap": {"step_ms": 20.0, "python_ms": 10.0, "never_read_ms": 20.5, "read_at_once_ms": 30.4},
    "precision": {"float32_ms": 4.0, "float16_ms": 1.0, "bfloat16_ms": 2.0, "weight_after_scaled_step": 0.5},
    "xla": "UnimplementedError: no compiler",
    "gpus": {"gpus": 2, "sum": 1.0, "bytes": 64_000_000, "reduce_ms": 4.0},
}


def test_each_measurement_becomes_a_sentence_with_its_numbers() -> None:
    found = {check.name: check for check in gpu_checks(MEASURED, NO_DRIVER)}
    assert not found["Driver (NVML)"].works
    assert found["Copies"].found == "8 GB/s to the device, 4 GB/s back (pageable memory)"
    assert found["Asynchrony"].works
    assert "take 20.5 ms together, and 30.4 ms where each result is read at once" in found["Asynchrony"].found
    assert found["Mixed precision"].found.startswith("products are 4 times as fast in float16 and 2 times in bfloat16")
    assert (found["XLA"].works, found["XLA"].found) == (False, "UnimplementedError: no compiler")
    assert (found["Several GPUs"].works, "NCCL" in found["Several GPUs"].advice) == (False, True)
    assert found["Copies"].to_json()["measured"] == MEASURED["copies"]


def test_launches_that_wait_are_noticed_and_what_was_not_measured_is_said() -> None:
    waits = {"step_ms": 20.0, "python_ms": 10.0, "never_read_ms": 30.2, "read_at_once_ms": 30.4}
    found = {check.name: check for check in gpu_checks({"overlap": waits, "end": "it was killed"}, [])}
    assert not found["Asynchrony"].works
    assert found["Copies"].found == "not measured: it was killed"


@pytest.mark.tensorflow
def test_doctor_takes_little_of_a_gpu_in_use(pretend_gpu: Path, tmp_path: Path) -> None:
    """The driver is there and shows the GPU, but fails to tell its memory."""
    ledger, errors = tmp_path / "ledger", {"nvmlDeviceGetMemoryInfo": 15, "nvmlDeviceGetName": 999}
    environment = os.environ | PretendGpu(count=2, ledger=ledger, nvml_errors=errors).environment(pretend_gpu)
    command = [sys.executable, "-m", "pipeline_lab", "doctor", "--json", "--store", str(tmp_path)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    document = {check["name"]: check for check in json.loads(ended.stdout)}
    assert document["TensorFlow starts"]["found"] == "devices CPU:0, GPU:0, GPU:1"
    assert document["GPU"]["works"]
    assert document["Profiler"]["works"]
    assert document["CUPTI"]["works"]
    (context,) = read_ledger(ledger)
    assert context.device == 0
    assert context.peak_bytes < 100_000_000


def test_the_probe_measures_on_a_gpu(ask_gpu: AskGpu) -> None:
    names = ["devices", "profile", "copies", "precision", "xla", "gpus"]
    gpu = PretendGpu(profiler_error="Insufficient privilege", copy_gbps=1)
    found = {each["name"]: each for each in ask_gpu("tests.worker.gpu_tasks:probe", gpu=gpu, names=names)}
    assert found["devices"]["found"]["devices"] == ["CPU:0", "GPU:0"]
    assert found["profile"]["found"]["gpu_events"] > 0
    assert found["profile"]["found"]["errors"] == ["Insufficient privilege"]
    assert found["copies"]["found"]["to_device_ms"] >= 64
    assert found["precision"]["found"]["weight_after_scaled_step"] == 0.5
    assert found["xla"]["error"].startswith("UnimplementedError: Could not find compiler")
    assert found["gpus"]["found"] == {"gpus": 1}


@unless_late
def test_the_probes_step_does_not_wait_for_the_device(ask_gpu: AskGpu) -> None:
    took_s = ask_gpu("tests.worker.gpu_tasks:time_step_of_probe", gpu=PretendGpu(op_us={"MatMul": 1e5}))
    assert took_s["called"] < 0.1 <= took_s["read"]
