"""TensorFlow's profiler as a recording inside somebody else's process uses it."""

import threading
from pathlib import Path

from pipeline_lab.capture.yielding import ours

_starting = threading.Lock()
"""Held between a look at the profiler and its start: ``watch`` and ``ProfileWindows`` may record in one process."""


class OwnProfiler:
    """Starts and stops sessions of ``tf.profiler.experimental`` that make room for the job's own."""

    def start(self, logdir: Path) -> None:
        """Start a session.

        Raises:
            tf.errors.AlreadyExistsError: The job has one, or somebody records through its profiler server.
        """
        import tensorflow as tf

        with _starting, ours():
            was_free = _is_free()
            try:
                tf.profiler.experimental.start(str(logdir))
            except tf.errors.AlreadyExistsError:
                if was_free:  # TensorFlow (2.21) keeps what did not start, and refuses the job's own sessions for it
                    tf.profiler.experimental.stop(save=False)
                raise

    def stop(self, *, save: bool) -> None:
        import tensorflow as tf

        with ours():
            tf.profiler.experimental.stop(save=save)


def _is_free() -> bool:
    """Say whether TensorFlow's module holds no session; false where a version keeps it elsewhere."""
    from tensorflow.python.profiler import profiler_v2

    return getattr(profiler_v2, "_profiler", profiler_v2) is None
