"""What is measured beside the steps: memory of the process, processor and GPU over time."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from pipeline_lab.runs.tables import RESOURCES, TableWriter
from pipeline_lab.worker.clock import Clock
from pipeline_lab.worker.memory import ResidentMemory

SAMPLE_PERIOD_S = 0.5


class ProcessorLoad:
    """Processor time since the last reading, split into this process and all others; 100 percent is one core."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._last = self._read()

    def read_percent(self) -> tuple[float, float]:
        """Return the load of this process and that of all others."""
        now = self._read()
        elapsed_s, own_s, busy_s = (new - old for new, old in zip(now, self._last, strict=True))
        self._last = now
        if elapsed_s <= 0:
            return 0.0, 0.0
        return 100 * own_s / elapsed_s, max(0.0, 100 * (busy_s - own_s) / elapsed_s)

    def _read(self) -> tuple[float, float, float]:
        own = self._process.cpu_times()
        machine = psutil.cpu_times()
        busy_s = machine.user + machine.system + machine.irq + machine.softirq
        return time.perf_counter(), own.user + own.system, busy_s


class GpuLoad:
    """Memory and load of the first GPU, or nothing where there is none."""

    def __init__(self, *, is_gpu: bool) -> None:
        self._device: Any = None
        if is_gpu:
            import pynvml

            self._nvml = pynvml
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlInit()
                self._device = pynvml.nvmlDeviceGetHandleByIndex(0)

    def read(self) -> tuple[int | None, float | None]:
        """Return used memory (bytes) and load (percent)."""
        if self._device is None:
            return None, None
        try:
            memory = self._nvml.nvmlDeviceGetMemoryInfo(self._device).used
            return int(memory), float(self._nvml.nvmlDeviceGetUtilizationRates(self._device).gpu)
        except self._nvml.NVMLError:
            return None, None


@contextlib.contextmanager
def sample_resources(
    table: TableWriter, clock: Clock, on_sample: Callable[[int], bool], *, is_gpu: bool
) -> Iterator[None]:
    """Fill the resources table from a thread while the block runs.

    Args:
        table: Open table of schema ``RESOURCES``.
        clock: The job's clock.
        on_sample: Told the resident memory (bytes) at each sample; says whether a window is being flushed.
        is_gpu: The job trains on a GPU.
    """
    memory, processor, gpu = ResidentMemory(), ProcessorLoad(), GpuLoad(is_gpu=is_gpu)
    end = threading.Event()
    errors: list[OSError] = []

    def sample() -> None:
        try:
            while not end.wait(SAMPLE_PERIOD_S):
                rss_bytes = memory.read_bytes()
                is_flushing = on_sample(rss_bytes)
                own_percent, other_percent = processor.read_percent()
                table.append(clock.now_ns(), rss_bytes, own_percent, other_percent, *gpu.read(), is_flushing)
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=sample, name="resources", daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
    if errors:
        raise errors[0]


def open_resources(path: Path) -> TableWriter:
    return TableWriter(path, RESOURCES)
