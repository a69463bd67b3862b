"""What a block of a race met on the machine: the job's processor time, that of others, a GPU that slows itself down."""

import os
from dataclasses import dataclass

from pipeline_lab.units import NS_PER_S
from pipeline_lab.worker.gpu import Gpu
from pipeline_lab.worker.processor_load import ProcessorLoad


@dataclass(frozen=True)
class BlockLoad:
    """One block's load.

    Attributes:
        cpu_ns: Processor time of this process and of those that it started.
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
        self._gpu = Gpu(is_gpu=is_gpu)
        self._processor = ProcessorLoad()

    def start(self) -> None:
        self._processor.lap()

    def read(self) -> BlockLoad:
        """Return the load since the start."""
        use = self._processor.lap()
        percent = min(100.0, 100 * use.others_s / (use.elapsed_s * self._cores))
        return BlockLoad(round((use.own_s + use.children_s) * NS_PER_S), percent, bool(self._gpu.is_slowed()))
