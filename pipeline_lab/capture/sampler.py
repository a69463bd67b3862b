"""Sample memory, CPU, GPU and tf.data's performance model of the user's job. Imports numpy, so only after the job has."""

import contextlib
import sys
import threading
from collections.abc import Callable

from pipeline_lab.runs.machine.nvidia import Gpu, GpuReading, find_gpu, gpu_ordinal
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.worker.note.event_log import Clock
from pipeline_lab.worker.record.resources import sample_resources


class Sampler:
    """Fills the tables of resources and of tf.data's own model from threads, until it is closed."""

    def __init__(self, folder: RunFolder, clock: Clock, on_sample: Callable[[int], bool]) -> None:
        from pipeline_lab.capture.script.live_iterators import BusiestIterator
        from pipeline_lab.worker.record.pipeline_model import sample_model  # both load TensorFlow

        self._stack = contextlib.ExitStack()
        self._stack.enter_context(sample_resources(folder.resources, clock, on_sample, GpuInUse(find_used)))
        self._stack.enter_context(sample_model(folder.model, clock, BusiestIterator().find))
        self._lock = threading.Lock()

    def close(self) -> None:
        """Stop; a full disk costs only the last rows."""
        with self._lock, contextlib.suppress(OSError):
            self._stack.close()


class GpuInUse:
    """Reads nothing before the job has a GPU, so that another job's numbers are not taken for its own.

    Args:
        find_used: Returns the place of the job's first GPU among those that CUDA shows, None while it has none.
    """

    def __init__(self, find_used: Callable[[], int | None]) -> None:
        self._find_used = find_used
        self._gpu: Gpu | None = None

    def read(self) -> GpuReading:
        """Read the GPU; all numbers are None without one."""
        if self._gpu is None and (ordinal := self._find_used()) is not None:
            self._gpu = find_gpu(ordinal)
        return GpuReading() if self._gpu is None else self._gpu.read()


def find_used() -> int | None:
    """Return the place of the first GPU that TensorFlow shows to the job.

    None until the job has made TensorFlow list its devices: listing starts CUDA, which breaks a job that forks later.
    """
    tensorflow, context = (sys.modules.get(name) for name in ("tensorflow", "tensorflow.python.eager.context"))
    if tensorflow is None or context is None:  # not loaded by the job
        return None
    found = getattr(context.context_safe(), "_physical_devices", None)  # there is no public way without listing devices
    visible = tensorflow.config.get_visible_devices("GPU") if found is not None else []
    return gpu_ordinal(visible[0].name) if visible else None
