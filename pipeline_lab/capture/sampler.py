"""The GPU of a job that is not ours, from the moment that the job uses one."""

import sys
from collections.abc import Callable

from pipeline_lab.worker.record.resources import Gpu, GpuReading


class GpuInUse:
    """Reads nothing before the job has a GPU, so that no other job's numbers are taken for its own.

    Args:
        is_used: Says whether the job has one.
    """

    def __init__(self, is_used: Callable[[], bool]) -> None:
        self._is_used = is_used
        self._gpu: Gpu | None = None

    def read(self) -> GpuReading:
        """Look at the GPU; each number is None where there is none."""
        if self._gpu is None and self._is_used():
            self._gpu = Gpu(is_gpu=True)
        return GpuReading() if self._gpu is None else self._gpu.read()


def shows_gpu() -> bool:
    """Say whether TensorFlow shows a GPU to the job.

    Before the job itself has had TensorFlow look for devices the answer is no: looking starts CUDA, which a job that
    forks later could not bear.
    """
    tensorflow, context = (sys.modules.get(name) for name in ("tensorflow", "tensorflow.python.eager.context"))
    if tensorflow is None or context is None:  # the job has not loaded it, so neither do we
        return False
    found = getattr(context.context_safe(), "_physical_devices", None)  # nothing public tells without looking
    return found is not None and bool(tensorflow.config.get_visible_devices("GPU"))
