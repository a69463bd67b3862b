"""TensorFlow's profiler as a recording inside somebody else's process uses it."""

from pathlib import Path

from pipeline_lab.capture.yielding import ours


class OwnProfiler:
    """Starts and stops sessions of ``tf.profiler.experimental`` that make room for the job's own."""

    def start(self, logdir: Path) -> None:
        import tensorflow as tf

        with ours():
            tf.profiler.experimental.start(str(logdir))

    def stop(self, *, save: bool) -> None:
        import tensorflow as tf

        with ours():
            tf.profiler.experimental.stop(save=save)
