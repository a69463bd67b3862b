"""The job's first GPU as NVML sees it: memory, load, clock, and whether it holds itself back."""

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

Answer = TypeVar("Answer")

SLOWED = 0x08 | 0x20 | 0x40 | 0x80
"""NVML's reasons for lower clocks that are trouble: hardware slowdown, software and hardware heat, power brake."""


@dataclass(frozen=True)
class GpuReading:
    """One look; each number is None where the driver does not tell, all of them without a GPU.

    Attributes:
        memory_bytes: In use.
        busy_percent: Share of the last moments in which a kernel ran.
        clock_mhz: Of the multiprocessors, now.
        is_slowed: It has lowered its clock because of heat or power.
    """

    memory_bytes: int | None = None
    busy_percent: float | None = None
    clock_mhz: int | None = None
    is_slowed: bool | None = None


class ReadsGpu(Protocol):
    """What can be asked for a look at a GPU."""

    def read(self) -> GpuReading: ...


class Gpu:
    """Reads the GPU that the job trains on, the first that CUDA shows to this process; nothing where there is none."""

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
        """Look at the GPU; a look takes some hundred microseconds."""
        return GpuReading(
            memory_bytes=self._ask("nvmlDeviceGetMemoryInfo", lambda found: int(found.used)),
            busy_percent=self._ask("nvmlDeviceGetUtilizationRates", lambda found: float(found.gpu)),
            clock_mhz=self._ask("nvmlDeviceGetClockInfo", int, getattr(self._nvml, "NVML_CLOCK_SM", None)),
            is_slowed=self.is_slowed(),
        )

    def is_slowed(self) -> bool | None:
        """Say whether heat or power holds the GPU back right now; None where the driver does not tell."""
        return self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", lambda reasons: bool(reasons & SLOWED))

    def _ask(self, question: str, convert: Callable[[Any], Answer], *arguments: Any) -> Answer | None:
        if self._nvml is None:
            return None
        try:
            return convert(getattr(self._nvml, question)(self._device, *arguments))
        except self._nvml.NVMLError:
            return None


def _find_first(nvml: Any, visible: str | None) -> Any:
    """Return NVML's handle of the first GPU of ``CUDA_VISIBLE_DEVICES``; None where that shows none.

    An entry is a number, the beginning of a GPU's UUID, or the UUID of a MIG instance. NVML counts by the place on the
    bus; CUDA does so too among GPUs of one kind.
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
