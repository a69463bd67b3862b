import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pipeline_lab.runs.machine.nvidia import Gpu, GpuReading, find_gpu
from tests.conftest import AskGpu
from tests.pretend_gpu import PretendGpu

TASKS = "tests.worker.gpu_tasks"
CLOCK_OF_FIRST = 1000


@pytest.mark.parametrize(("visible", "index"), [("2", 2), (" 1,0", 1), ("GPU-b,GPU-a", 1)])
def test_the_gpu_is_the_one_that_cuda_shows_first(ask_gpu: AskGpu, visible: str, index: int) -> None:
    found = ask_gpu(f"{TASKS}:read_gpu", gpu=PretendGpu(count=3, visible=visible), ordinal=0)
    assert found["clock_mhz"] == CLOCK_OF_FIRST + index


@pytest.mark.parametrize(("visible", "index"), [(None, 1), ("2,0", 0)])
def test_the_gpu_of_a_script_is_the_one_that_it_chose(ask_gpu: AskGpu, visible: str | None, index: int) -> None:
    found = ask_gpu(f"{TASKS}:read_gpu_of_script", gpu=PretendGpu(count=3, visible=visible), chosen=1)
    assert found["clock_mhz"] == CLOCK_OF_FIRST + index


def test_a_gpu_at_its_power_limit_is_slowed_but_steady(ask_gpu: AskGpu) -> None:
    found = ask_gpu(f"{TASKS}:read_gpu", gpu=PretendGpu(clock_reasons=4), ordinal=0)
    assert (found["is_slowed"], found["is_unsteady"], found["slowed_by"]) == (True, False, ["its power limit"])
    hot = ask_gpu(f"{TASKS}:read_gpu", gpu=PretendGpu(clock_reasons=0x01 | 0x20), ordinal=0)
    assert (hot["is_slowed"], hot["is_unsteady"], hot["slowed_by"]) == (True, True, ["heat (software)"])


def test_a_driver_that_fails_after_its_start_is_told_in_one_sentence(ask_gpu: AskGpu) -> None:
    assert ask_gpu(f"{TASKS}:count_gpus", gpu=PretendGpu(count=2)) == 2
    reset = PretendGpu(nvml_errors={"nvmlDeviceGetHandleByIndex_v2": 15})
    found = ask_gpu(f"{TASKS}:count_gpus", gpu=reset)
    assert found.startswith("NVIDIA's management library does not answer: ")
    assert ask_gpu(f"{TASKS}:read_gpu", gpu=reset, ordinal=0)["memory_bytes"] is None


def test_without_a_gpu_its_columns_stay_empty() -> None:
    assert Gpu().read() == GpuReading(None, None, None, None)


def test_a_gpu_tells_its_load_and_its_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpu = find_gpu(0)
    assert gpu.read() == GpuReading(memory_bytes=3 * 10**9, busy_percent=87.0, clock_mhz=1980, is_slowed=False)
    nvml.fails = True
    assert gpu.read() == GpuReading()


def test_a_gpu_without_a_driver_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml()
    nvml.fails = True
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpu = find_gpu(0)
    nvml.fails = False
    assert gpu.read() == GpuReading()


@pytest.mark.parametrize(
    ("visible", "device"),
    [
        ("2", "gpu 2"),
        (" 1,0", "gpu 1"),
        ("GPU-b,GPU-a", "gpu 1"),  # a beginning that only one has
        ("MIG-c0ffee", "MIG-c0ffee"),
        ("", None),
        ("-1", None),
        ("GPU-zz", None),
    ],
)
def test_the_gpu_is_the_first_that_the_job_can_see(
    visible: str, device: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml = FakeNvml()
    nvml.device = device
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = find_gpu(0).read()
    assert found.clock_mhz == (None if device is None else 1980)


class FakeNvml(ModuleType):
    """As much of NVML's Python binding as is used, with three GPUs of which one is asked."""

    NVML_CLOCK_SM = 1

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.reasons, self.fails = 0x01, False
        self.device: str | None = "gpu 0"

    def nvmlInit(self) -> None:  # noqa: N802, NVML's names
        self._answer(None)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        return str(self._answer(f"gpu {index}"))

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 3

    def nvmlDeviceGetUUID(self, device: str) -> str:  # noqa: N802
        return {"gpu 0": "GPU-a123", "gpu 1": "GPU-b123", "gpu 2": "GPU-c123"}[device]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        return uuid

    def nvmlDeviceGetMemoryInfo(self, device: str) -> Any:  # noqa: N802
        assert device == self.device
        return self._answer(SimpleNamespace(used=3 * 10**9))

    def nvmlDeviceGetUtilizationRates(self, device: str) -> Any:  # noqa: N802
        assert device == self.device
        return self._answer(SimpleNamespace(gpu=87))

    def nvmlDeviceGetClockInfo(self, device: str, clock: int) -> Any:  # noqa: N802
        assert (device, clock) == (self.device, self.NVML_CLOCK_SM)
        return self._answer(1980)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, device: str) -> Any:  # noqa: N802
        assert device == self.device
        return self._answer(self.reasons)

    def _answer(self, value: Any) -> Any:
        if self.fails:
            raise self.NVMLError("not supported")
        return value
