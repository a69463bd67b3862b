"""TensorFlow's profiler in the user's process: there is one per process, and the job's own sessions take precedence.

TensorFlow's ``start`` and ``stop`` take a lock of their module, so a lock in its place notices every use.
"""

import contextlib
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

_ours = threading.local()


class YieldingLock:
    """Replaces TensorFlow's profiler lock; other users find the profiler free.

    Args:
        inner: TensorFlow's own lock.
        pause: Releases the profiler; returns when it is free.
        resume: Called when the other user is done.
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
    """Say whether the calling thread uses the profiler for Pipeline Lab."""
    return bool(getattr(_ours, "depth", 0))


class ours:  # noqa: N801 (reads as a statement)
    """Marks the calling thread's use of the profiler in the block as Pipeline Lab's."""

    def __enter__(self) -> None:
        _ours.depth = getattr(_ours, "depth", 0) + 1

    def __exit__(self, *_error: object) -> None:
        _ours.depth -= 1


def make_room_for_others(pause: Callable[[], None], resume: Callable[[], None]) -> None:
    """Replace TensorFlow's lock; without one in this version, sessions may collide."""
    from tensorflow.python.profiler import profiler_v2

    inner = getattr(profiler_v2, "_profiler_lock", None)
    if inner is not None:
        profiler_v2._profiler_lock = YieldingLock(inner, pause, resume)


_starting = threading.Lock()
"""Held from checking the profiler to its start: ``watch`` and ``ProfileWindows`` may record in one process."""


class SharedProfiler:
    """Starts and stops sessions of ``tf.profiler.experimental`` that yield to the job's own.

    Args:
        patience_s: Longest wait for the devices, s. None where only the training thread settles, which gives them no work
            meanwhile.
    """

    def __init__(self, patience_s: float | None = None) -> None:
        self._patience_s = patience_s

    def load(self) -> None:
        from pipeline_lab.capture.device_use import are_devices_in_use
        from pipeline_lab.worker.record.profiler import load_profiler  # loads TensorFlow

        if are_devices_in_use():
            load_profiler(self)

    def settle(self) -> None:
        from pipeline_lab.capture.device_use import are_devices_in_use
        from pipeline_lab.worker.record.profiler import wait_for_devices  # loads TensorFlow

        if not are_devices_in_use():
            return
        if self._patience_s is None:
            wait_for_devices()
            return
        waiting = threading.Thread(target=wait_for_devices, name="pipeline-lab-settle", daemon=True)
        with contextlib.suppress(RuntimeError):  # the interpreter is exiting and starts no threads
            waiting.start()
            waiting.join(self._patience_s)

    def start(self, logdir: Path) -> None:
        """Start a session.

        Raises:
            tf.errors.AlreadyExistsError: The job has a session, or its profiler server has.
        """
        import tensorflow as tf

        with _starting, ours():
            was_free = _is_free()
            try:
                tf.profiler.experimental.start(str(logdir))
            except tf.errors.AlreadyExistsError:
                if was_free:  # TensorFlow (2.21) keeps the failed session and refuses others because of it
                    tf.profiler.experimental.stop(save=False)
                raise

    def stop(self, *, save: bool) -> None:
        import tensorflow as tf

        with ours():
            tf.profiler.experimental.stop(save=save)


def _is_free() -> bool:
    """Say whether TensorFlow's module has no session; false if this version keeps it elsewhere."""
    from tensorflow.python.profiler import profiler_v2

    return getattr(profiler_v2, "_profiler", profiler_v2) is None
