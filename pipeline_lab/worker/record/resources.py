"""Memory, CPU and GPU use over time, recorded beside the steps."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import psutil

from pipeline_lab.runs.run_tables import RESOURCES, TableWriter
from pipeline_lab.worker.note.event_log import Clock
from pipeline_lab.worker.record.own_process import ResidentMemory, run_beside

FIRST_LOOK_S, LOOK_EVERY_S = 1.0, 5.0
"""Time between searches for new child processes, doubled up to the second number. A search reads many small files, each of
which waits for Python's lock. Earlier CPU time of a process counts when it is found.
"""


@dataclass(frozen=True)
class ProcessorUse:
    """CPU time between two readings, s, summed over cores."""

    elapsed_s: float
    own_s: float
    children_s: float
    """Of child processes, such as those behind a Python generator."""
    others_s: float
    """Of all other programs, including time stolen by the host."""


class _Children:
    """Child processes and their descendants."""

    def __init__(self) -> None:
        self._own = psutil.Process()
        self._found: list[psutil.Process] = []
        self._look_s = time.monotonic()
        self._pause_s = FIRST_LOOK_S

    def spent_s(self) -> float:
        """Return their CPU time, ended ones included, s."""
        if (now_s := time.monotonic()) >= self._look_s:
            self._found, self._look_s = self._own.children(recursive=True), now_s + self._pause_s
            self._pause_s = min(LOOK_EVERY_S, 2 * self._pause_s)
        ended = os.times()
        spent_s = ended.children_user + ended.children_system
        for child in self._found:
            with contextlib.suppress(psutil.Error):  # it ended meanwhile
                used = child.cpu_times()
                spent_s += used.user + used.system
        return spent_s


class ProcessorLoad:
    """Measures CPU time between readings."""

    def __init__(self) -> None:
        self._children = _Children()
        self._last = self._read()

    def lap(self) -> ProcessorUse:
        """Return the use since the last lap and begin the next one."""
        now = self._read()
        elapsed_s, own_s, children_s, busy_s = (new - old for new, old in zip(now, self._last, strict=True))
        self._last = now
        children_s = max(0.0, children_s)  # children that nobody waited for are lost
        return ProcessorUse(elapsed_s, own_s, children_s, max(0.0, busy_s - own_s - children_s))

    def _read(self) -> tuple[float, float, float, float]:
        """Return clock and CPU time of this process, its children and the whole machine, s."""
        machine = psutil.cpu_times()
        stolen = getattr(machine, "steal", 0.0)
        busy_s = machine.user + machine.nice + machine.system + machine.irq + machine.softirq + stolen
        return time.perf_counter(), time.process_time(), self._children.spent_s(), busy_s


Answer = TypeVar("Answer")

SLOWED = 0x08 | 0x20 | 0x40 | 0x80
"""NVML's reasons for lower clocks that matter: hardware slowdown, software and hardware heat, power brake."""


@dataclass(frozen=True)
class GpuReading:
    """One reading; each number is None where the driver does not provide it, all without a GPU.

    Attributes:
        memory_bytes: In use.
        busy_percent: Share of the last moments in which a kernel ran.
        clock_mhz: Of the multiprocessors.
        is_slowed: Clocks are lowered because of heat or power.
    """

    memory_bytes: int | None = None
    busy_percent: float | None = None
    clock_mhz: int | None = None
    is_slowed: bool | None = None


class ReadsGpu(Protocol):
    """Reads a GPU."""

    def read(self) -> GpuReading: ...


class Gpu:
    """Reads the GPU that the job trains on: the first that CUDA shows to this process, if any."""

    def __init__(self, *, is_gpu: bool) -> None:
        self._nvml: Any = None
        self._device: Any = None
        if is_gpu:
            import pynvml

            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlInit()
                self._device = _find_first(pynvml, os.environ.get("CUDA_VISIBLE_DEVICES"))
                self._nvml = None if self._device is None else pynvml

    def read(self) -> GpuReading:
        """Read the GPU; takes some hundred microseconds."""
        return GpuReading(
            memory_bytes=self._ask("nvmlDeviceGetMemoryInfo", lambda found: int(found.used)),
            busy_percent=self._ask("nvmlDeviceGetUtilizationRates", lambda found: float(found.gpu)),
            clock_mhz=self._ask("nvmlDeviceGetClockInfo", int, getattr(self._nvml, "NVML_CLOCK_SM", None)),
            is_slowed=self.is_slowed(),
        )

    def is_slowed(self) -> bool | None:
        """Say whether heat or power lowers the clocks now; None where the driver does not provide it."""
        return self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", lambda reasons: bool(reasons & SLOWED))

    def _ask(self, question: str, convert: Callable[[Any], Answer], *arguments: Any) -> Answer | None:
        if self._nvml is None:
            return None
        try:
            return convert(getattr(self._nvml, question)(self._device, *arguments))
        except self._nvml.NVMLError:
            return None


def _find_first(nvml: Any, visible: str | None) -> Any:
    """Return NVML's handle of the first GPU of ``CUDA_VISIBLE_DEVICES``; None if that shows none.

    An entry is a number, the beginning of a GPU's UUID, or the UUID of a MIG instance. NVML numbers by bus position, as
    does CUDA among GPUs of one kind.
    """
    first = "0" if visible is None else visible.split(",")[0].strip()
    if first.isdecimal():
        return nvml.nvmlDeviceGetHandleByIndex(int(first))
    if first.startswith("MIG-"):
        return nvml.nvmlDeviceGetHandleByUUID(first)
    if not first.startswith("GPU-"):
        return None
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    return next((handle for handle in handles if nvml.nvmlDeviceGetUUID(handle).startswith(first)), None)


SAMPLE_PERIOD_S = 0.5


@contextlib.contextmanager
def sample_resources(path: Path, clock: Clock, on_sample: Callable[[int], bool], gpu: ReadsGpu) -> Iterator[None]:
    """Fill the resources table from a thread while the block runs.

    Args:
        path: The table.
        clock: The job's clock.
        on_sample: Called with the resident memory (bytes) at each sample; returns whether a window is being flushed.
        gpu: The one that the job trains on.
    """
    memory, processor = ResidentMemory(), ProcessorLoad()

    def sample(end: threading.Event) -> None:
        while not end.wait(SAMPLE_PERIOD_S):
            rss_bytes = memory.read_bytes()
            is_flushing = on_sample(rss_bytes)
            use = processor.lap()
            spent = (use.own_s, use.others_s, use.children_s)
            own_percent, other_percent, children_percent = (100 * each / use.elapsed_s for each in spent)
            seen = gpu.read()
            table.append(
                clock.now_ns(),
                rss_bytes,
                own_percent,
                other_percent,
                seen.memory_bytes,
                seen.busy_percent,
                is_flushing,
                seen.clock_mhz,
                seen.is_slowed,
                children_percent,
            )

    with contextlib.closing(TableWriter(path, RESOURCES)) as table, run_beside("resources", sample):
        yield
