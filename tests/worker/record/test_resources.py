import errno
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pipeline_lab.runs.run_tables import RESOURCES, read_table
from pipeline_lab.worker.note.event_log import Clock
from pipeline_lab.worker.record import resources
from pipeline_lab.worker.record.own_process import ResidentMemory, return_free_memory
from pipeline_lab.worker.record.resources import (
    Gpu,
    GpuReading,
    ProcessorLoad,
    ProcessorUse,
    sample_resources,
)


def test_resident_memory_grows_by_what_is_taken() -> None:
    memory = ResidentMemory()
    before_bytes = memory.read_bytes()
    taken = bytearray(50_000_000)
    taken[::4096] = b"x" * len(taken[::4096])
    assert 45_000_000 < memory.read_bytes() - before_bytes < 60_000_000
    del taken
    return_free_memory()


def test_load_is_split_into_own_and_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # clock, own, children's, machine: one of four seconds is ours, half a one that of processes that we started
    readings = iter([(0.0, 10.0, 3.0, 100.0), (2.0, 11.0, 3.5, 104.0)])
    monkeypatch.setattr(ProcessorLoad, "_read", lambda _: next(readings))
    assert ProcessorLoad().lap() == ProcessorUse(elapsed_s=2.0, own_s=1.0, children_s=0.5, others_s=2.5)


def test_a_process_that_this_one_started_is_not_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "FIRST_LOOK_S", 0.0)
    load = ProcessorLoad()
    script = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert load.lap().children_s >= 0.25
        child.communicate(b"\n")
    assert 0.0 <= load.lap().children_s < 0.25  # it has ended and counts on


def test_without_a_gpu_its_columns_stay_empty() -> None:
    assert Gpu(is_gpu=False).read() == GpuReading(None, None, None, None)


def test_a_gpu_tells_its_load_its_clock_and_whether_heat_or_power_hold_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpu = Gpu(is_gpu=True)
    assert gpu.read() == GpuReading(memory_bytes=3 * 10**9, busy_percent=87.0, clock_mhz=1980, is_slowed=False)
    nvml.reasons = 0x04 | 0x20  # at its power limit, which is usual, and too hot, which is not
    assert gpu.is_slowed() is True
    nvml.fails = True
    assert gpu.read() == GpuReading()


def test_a_gpu_without_a_driver_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml()
    nvml.fails = True
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpu = Gpu(is_gpu=True)
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
    found = Gpu(is_gpu=True).read()
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


def test_samples_are_taken_while_the_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "SAMPLE_PERIOD_S", 0.001)
    seen = threading.Event()

    def on_sample(rss_bytes: int) -> bool:
        assert rss_bytes > 0
        seen.set()
        return True

    with sample_resources(tmp_path / "resources", Clock(), on_sample, Gpu(is_gpu=False)):
        assert seen.wait(10)
    rows = read_table(tmp_path / "resources", RESOURCES)
    assert rows.num_rows >= 1
    assert set(rows["flushing"].to_pylist()) == {True}
    assert set(rows["gpu_percent"].to_pylist()) == {None}


def test_a_full_disk_reaches_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "SAMPLE_PERIOD_S", 0.001)
    failed = threading.Event()

    class FullTable:
        def append(self, *_: Any) -> None:
            failed.set()
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self) -> None:
            pass

    monkeypatch.setattr(resources, "TableWriter", lambda *_: FullTable())

    def run() -> None:
        with sample_resources(tmp_path / "resources", Clock(), lambda _: False, Gpu(is_gpu=False)):
            assert failed.wait(10)

    with pytest.raises(OSError, match="No space left"):
        run()
