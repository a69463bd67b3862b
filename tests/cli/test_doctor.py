import json
from pathlib import Path
from typing import Any

import pytest

from pipeline_lab.cli.commands import doctor
from pipeline_lab.cli.commands.doctor import Check, quick_checks, tensorflow_checks
from pipeline_lab.runs.store import RunStore
from tests.cli.support import call

CPU = {"devices": ["CPU:0"], "cuda": True, "host_traced": True, "gpu_traced": False}
GPU = CPU | {"devices": ["CPU:0", "GPU:0"], "gpu_traced": True}


def told(found: dict[str, Any] | str, gpus: list[str]) -> dict[str, Check]:
    return {check.name: check for check in tensorflow_checks(lambda: found, gpus)}


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
    found = told(CPU, [])
    assert found["GPU"] == Check("GPU", True, "none; jobs run on the CPU", needed=False)
    assert found["Profiler"].works
    assert "CUPTI" not in found


def test_a_gpu_that_tensorflow_sees_and_traces_is_fine() -> None:
    found = told(GPU, ["NVIDIA H200"])
    assert (found["GPU"].found, found["GPU"].works, found["CUPTI"].works) == ("NVIDIA H200", True, True)


@pytest.mark.parametrize("cuda", [True, False])
def test_a_gpu_that_tensorflow_does_not_see_comes_with_advice(cuda: bool) -> None:
    check = told(CPU | {"cuda": cuda}, ["NVIDIA H200"])["GPU"]
    assert not check.works
    assert "TensorFlow does not see it" in check.found
    assert ("requirements-gpu.txt" in check.advice) or cuda
    assert check.advice


def test_a_gpu_without_events_points_at_cupti() -> None:
    check = told(GPU | {"gpu_traced": False}, ["NVIDIA H200"])["CUPTI"]
    assert not check.works
    assert "libcupti" in check.advice


def test_a_tensorflow_that_does_not_start_is_told_and_ends_the_questions() -> None:
    found = told("it ended with exit code 1: ImportError: libx", [])
    assert list(found) == ["TensorFlow starts"]
    assert found["TensorFlow starts"].found.endswith("ImportError: libx")


def test_a_failed_need_is_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(doctor, "_PROBE", "import sys; sys.exit('no TensorFlow here')")
    ended = call("doctor", "--json", "--store", tmp_path / "file" / "store")
    assert ended.exit_code == 1
    document = {check["name"]: check for check in json.loads(ended.stdout)}
    assert not document["Run store"]["works"]
    assert document["TensorFlow starts"]["found"] == "it ended with exit code 1: no TensorFlow here"


def test_the_table_shows_found_and_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_PROBE", f"print({json.dumps(json.dumps(CPU))})")
    ended = call("doctor", "--store", tmp_path)
    assert ended.exit_code == 0
    assert "devices CPU:0" in ended.stdout


@pytest.mark.tensorflow
def test_the_real_probe_finds_a_cpu_and_a_working_profiler() -> None:
    found = doctor.probe_tensorflow()
    assert isinstance(found, dict)
    assert found["host_traced"]
    assert "CPU:0" in found["devices"]


def test_a_probe_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_PROBE", "import time; time.sleep(600)")
    monkeypatch.setattr(doctor, "PROBE_TIMEOUT_S", 0.2)
    assert doctor.probe_tensorflow() == "it did not start within 0.2 s"
