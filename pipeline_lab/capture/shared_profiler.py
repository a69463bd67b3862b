"""TensorFlow's profiler inside somebody else's process: there is one per process, and the job's own sessions go first."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

_ours = threading.local()


class YieldingLock:
    """Stands for TensorFlow's profiler lock; whoever else takes it finds the profiler free.

    Args:
        inner: TensorFlow's own lock.
        pause: Gives the profiler away; returns when it is free.
        resume: Says that the caller is through.
    """

    def __init__(
        self, inner: AbstractContextManager[object], pause: Callable[[], None], resume: Callable[[], None]
    ) -> None:
        self._inner, self._pause, self._resume = inner, pause, resume

    def __enter__(self) -> None:
        if not is_ours():
            self._pause()
        self._inner.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._inner.__exit__(kind, error, traceback)
        if not is_ours():
            self._resume()


def is_ours() -> bool:
    """Say whether the calling thread uses the profiler for us."""
    return bool(getattr(_ours, "depth", 0))


class ours:  # noqa: N801 (reads as a statement)
    """Marks what the calling thread does inside the block as our own use of the profiler."""

    def __enter__(self) -> None:
        _ours.depth = getattr(_ours, "depth", 0) + 1

    def __exit__(self, *_error: object) -> None:
        _ours.depth -= 1


def make_room_for_others(pause: Callable[[], None], resume: Callable[[], None]) -> None:
    """Put our lock in the place of TensorFlow's; where a version has none, its sessions may meet ours."""
    from tensorflow.python.profiler import profiler_v2

    inner = getattr(profiler_v2, "_profiler_lock", None)
    if inner is not None:
        profiler_v2._profiler_lock = YieldingLock(inner, pause, resume)


_starting = threading.Lock()
"""Held between a look at the profiler and its start: ``watch`` and ``ProfileWindows`` may record in one process."""


class SharedProfiler:
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
