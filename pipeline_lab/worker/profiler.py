"""TensorFlow's profiler, as the windows use it."""

from pathlib import Path

import tensorflow as tf


class TensorFlowProfiler:
    """Starts and stops ``tf.profiler.experimental`` sessions."""

    def start(self, logdir: Path) -> None:
        tf.profiler.experimental.start(str(logdir))

    def stop(self, *, save: bool) -> None:
        tf.profiler.experimental.stop(save=save)
