"""What a block of a race met on the machine: our own processor time, that of others, a GPU that slows itself down."""

import contextlib
import os
from dataclasses import dataclass
from typing import Any

from pipeline_lab.units import NS_PER_S
from pipeline_lab.worker.processor_load import ProcessorLoad

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
        self._processor = ProcessorLoad()

    def start(self) -> None:
        self._processor.lap()

    def read(self) -> BlockLoad:
        """Return the load since the start."""
        use = self._processor.lap()
        percent = min(100.0, 100 * use.others_s / (use.elapsed_s * self._cores))
        return BlockLoad(round(use.own_s * NS_PER_S), percent, self._is_throttled())

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
