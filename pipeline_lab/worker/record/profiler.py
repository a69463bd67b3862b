"""TensorFlow's profiler and its step markers."""

from contextlib import AbstractContextManager
from pathlib import Path

import tensorflow as tf


class TensorFlowProfiler:
    """Starts and stops ``tf.profiler.experimental`` sessions."""

    def start(self, logdir: Path) -> None:
        tf.profiler.experimental.start(str(logdir))

    def stop(self, *, save: bool) -> None:
        tf.profiler.experimental.stop(save=save)


def mark_launch(number: int) -> AbstractContextManager[None]:
    """Mark the launch of a step of the emulated accelerator, with the number that its event in the trace carries too."""
    marker: AbstractContextManager[None] = tf.profiler.experimental.Trace("emulated launch", correlation_id=number)
    return marker


def mark_step(step: int) -> AbstractContextManager[None]:
    """Mark a training step in the trace; ``_r`` makes it a step for TensorFlow's tools too."""
    marker: AbstractContextManager[None] = tf.profiler.experimental.Trace("train", step_num=step, _r=1)
    return marker
