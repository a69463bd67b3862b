"""Sample memory, CPU, GPU and tf.data's performance model of the user's job. Imports numpy, so only after the job has."""

import contextlib
import sys
import threading
from collections.abc import Callable

from pipeline_lab.runs.store import RunFolder
from pipeline_lab.worker.note.event_log import Clock
from pipeline_lab.worker.record.resources import Gpu, GpuReading, sample_resources


class Sampler:
    """Fills the tables of resources and of tf.data's own model from threads, until it is closed."""

    def __init__(self, folder: RunFolder, clock: Clock, on_sample: Callable[[int], bool]) -> None:
        from pipeline_lab.capture.live_iterators import BusiestIterator
        from pipeline_lab.worker.record.pipeline_model import sample_model  # both load TensorFlow

        self._stack = contextlib.ExitStack()
        self._stack.enter_context(sample_resources(folder.resources, clock, on_sample, GpuInUse(shows_gpu)))
        self._stack.enter_context(sample_model(folder.model, clock, BusiestIterator().find))
        self._lock = threading.Lock()

    def close(self) -> None:
        """Stop; a full disk costs only the last rows."""
        with self._lock, contextlib.suppress(OSError):
            self._stack.close()


class GpuInUse:
    """Reads nothing before the job has a GPU, so that another job's numbers are not taken for its own.

    Args:
        is_used: Says whether the job has a GPU.
    """

    def __init__(self, is_used: Callable[[], bool]) -> None:
        self._is_used = is_used
        self._gpu: Gpu | None = None

    def read(self) -> GpuReading:
        """Read the GPU; all numbers are None without one."""
        if self._gpu is None and self._is_used():
            self._gpu = Gpu(is_gpu=True)
        return GpuReading() if self._gpu is None else self._gpu.read()


def shows_gpu() -> bool:
    """Say whether TensorFlow shows a GPU to the job.

    False until the job has made TensorFlow list its devices: listing starts CUDA, which breaks a job that forks later.
    """
    tensorflow, context = (sys.modules.get(name) for name in ("tensorflow", "tensorflow.python.eager.context"))
    if tensorflow is None or context is None:  # not loaded by the job
        return False
    found = getattr(context.context_safe(), "_physical_devices", None)  # there is no public way without listing devices
    return found is not None and bool(tensorflow.config.get_visible_devices("GPU"))
