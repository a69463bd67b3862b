"""The first GPU as NVML sees it: memory, load, clock, and whether it holds itself back."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

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


class Gpu:
    """Reads the GPU that the job trains on; nothing where there is none."""

    def __init__(self, *, is_gpu: bool) -> None:
        self._nvml: Any = None
        self._device: Any = None
        if is_gpu:
            import pynvml

            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlInit()
                self._device = pynvml.nvmlDeviceGetHandleByIndex(0)
                self._nvml = pynvml

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
