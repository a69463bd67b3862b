"""TensorFlow's profiler and its step markers."""

import contextlib
import tempfile
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import tensorflow as tf

from pipeline_lab.runs.record import EVALUATION_BEGINS, EVALUATION_ENDS
from pipeline_lab.worker.record.window_recorder import Profiler


class TensorFlowProfiler:
    """Starts and stops ``tf.profiler.experimental`` sessions."""

    def load(self) -> None:
        load_profiler(self)

    def settle(self) -> None:
        wait_for_devices()

    def start(self, logdir: Path) -> None:
        tf.profiler.experimental.start(str(logdir))

    def stop(self, *, save: bool) -> None:
        tf.profiler.experimental.stop(save=save)


_loaded = threading.Event()


def load_profiler(profiler: Profiler) -> None:
    """Start and stop the profiler if there is a GPU and nobody has done so in this process; the devices must be in use.

    The first session on a GPU loads CUPTI, which takes seconds, and memory that no window is to be charged with.
    """
    if _loaded.is_set() or not tf.config.list_logical_devices("GPU"):
        return
    _loaded.set()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.suppress(tf.errors.OpError),
    ):  # another session has loaded it
        profiler.start(Path(folder))
        profiler.stop(save=False)


def mark_launch(number: int) -> AbstractContextManager[None]:
    """Mark the launch of a step of the emulated accelerator, with the number that its event in the trace carries too."""
    marker: AbstractContextManager[None] = tf.profiler.experimental.Trace("emulated launch", correlation_id=number)
    return marker


def wait_for_devices() -> None:
    """Wait until every accelerator has finished its work; the devices must be in use. Does nothing on a CPU."""
    if not tf.executing_eagerly() or all(device.device_type == "CPU" for device in tf.config.list_logical_devices()):
        return
    with contextlib.suppress(tf.errors.OpError):  # a step's failure, which the job itself meets
        tf.test.experimental.sync_devices()


def mark_step(step: int) -> AbstractContextManager[None]:
    """Mark a training step in the trace; ``_r`` makes it a step for TensorFlow's tools too."""
    marker: AbstractContextManager[None] = tf.profiler.experimental.Trace("train", step_num=step, _r=1)
    return marker


@contextlib.contextmanager
def mark_evaluation() -> Iterator[None]:
    """Mark in the trace that the model is evaluated: no step goes on meanwhile."""
    with tf.profiler.experimental.Trace(EVALUATION_BEGINS):
        pass
    try:
        yield
    finally:
        with tf.profiler.experimental.Trace(EVALUATION_ENDS):
            pass
