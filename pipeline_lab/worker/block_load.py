"""What a block of a race met on the machine: our own processor time, that of others, a GPU that slows itself down."""

import contextlib
import os
import time
from dataclasses import dataclass
from typing import Any

import psutil

_SLOWED = 0x08 | 0x20 | 0x40 | 0x80
"""NVML's reasons for lower clocks that are trouble: hardware slowdown, software and hardware heat, power brake."""


@dataclass(frozen=True)
class BlockLoad:
    """One block's load.

    Attributes:
        cpu_ns: Processor time of this process.
        other_load_percent: What everybody else used of all cores, 0 to 100; time stolen by the host included.
        throttled: The GPU had lowered its clocks because of heat or power at the end of the block.
    """

    cpu_ns: int
    other_load_percent: float
    throttled: bool


class LoadMeter:
    """Measures from one ``start`` to the next ``read``."""

    def __init__(self, *, is_gpu: bool) -> None:
        self._cores = os.cpu_count() or 1
        self._nvml: Any = None
        self._gpu: Any = None
        if is_gpu:
            self._open_gpu()
        self.start()

    def start(self) -> None:
        self._begun = self._read()

    def read(self) -> BlockLoad:
        """Return the load since the start."""
        elapsed_s, own_s, busy_s = (now - then for now, then in zip(self._read(), self._begun, strict=True))
        others_s = max(0.0, busy_s - own_s)
        percent = min(100.0, 100 * others_s / (elapsed_s * self._cores)) if elapsed_s > 0 else 0.0
        return BlockLoad(round(own_s * 1e9), percent, self._is_throttled())

    def _read(self) -> tuple[float, float, float]:
        machine = psutil.cpu_times()
        stolen = getattr(machine, "steal", 0.0)
        busy_s = machine.user + machine.nice + machine.system + machine.irq + machine.softirq + stolen
        return time.perf_counter(), time.process_time(), busy_s

    def _is_throttled(self) -> bool:
        if self._nvml is None:
            return False
        try:
            return bool(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._gpu) & _SLOWED)
        except self._nvml.NVMLError:
            return False

    def _open_gpu(self) -> None:
        import pynvml

        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlInit()
            self._gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
            self._nvml = pynvml
