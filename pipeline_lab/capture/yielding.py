"""Let a script that profiles itself do so: its sessions go first, ours make room.

There is one profiler per process. TensorFlow's ``start`` and ``stop`` take a lock of their module, however a script
came by them, so a lock in its place learns of every use.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
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
