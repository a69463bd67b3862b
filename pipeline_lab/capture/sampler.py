"""Sample memory, processor, GPU and tf.data's own model of somebody else's job. Imports numpy: only after the job has."""

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
        """Stop; a full disk has cost the last rows, no more."""
        with self._lock, contextlib.suppress(OSError):
            self._stack.close()


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
