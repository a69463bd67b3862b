"""Work on several lines at once: compiled loops hold no GIL, so that threads use all cores."""

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")
Other = TypeVar("Other")

_THREAD_NAME = "on-all-cores"


WORTH_THREADS = 50_000
"""Events below which handing them to other threads takes longer than the work."""


def on_all_cores(work: Callable[[Job], Result], jobs: Iterable[Job], events: int = WORTH_THREADS) -> list[Result]:
    """Do every job, as many at a time as there are cores; return the results in the order of the jobs.

    A job that asks for the same gets its own jobs done one after another: the cores are busy already.

    Args:
        work: What to do.
        jobs: With what.
        events: Number of events in all of them; few are worked on here.
    """
    waiting = list(jobs)
    if events < WORTH_THREADS:
        return list(map(work, waiting))
    if len(waiting) < 2 or not has_other_core():
        return list(map(work, waiting))
    return list(_pool(_cores(), os.getpid()).map(work, waiting))


def has_other_core() -> bool:
    """Say whether there is a core besides that of this thread, which others like it do not keep busy."""
    return _cores() > 1 and not threading.current_thread().name.startswith(_THREAD_NAME)


WORTH_A_CORE = 200_000
"""Events of a trace whose analyses run on two cores."""


def beside(work: Callable[[], Result], other: Callable[[], Other], events: int = WORTH_A_CORE) -> tuple[Result, Other]:
    """Do two things at once, the second of them on another core; what the first does on all cores gets the free ones.

    The first may wait for what the second makes, where :func:`has_other_core`.

    Args:
        work: To do on this thread.
        other: To do on another one.
        events: Number of events that they are about; about few, both are done here.
    """
    if events < WORTH_A_CORE or not has_other_core():
        return work(), other()
    share_one_heap()
    # A thread of its own: those of the pool only do jobs, which wait for nobody.
    with ThreadPoolExecutor(1, thread_name_prefix=_THREAD_NAME) as beside_this:
        begun = beside_this.submit(other)
        done = work()
        return done, begun.result()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def keep_to_one_core() -> None:
    """Let this thread do all its jobs one after another: others like it keep the remaining cores busy."""
    threading.current_thread().name = _THREAD_NAME


_M_ARENA_MAX = -8
"""Of glibc's ``malloc.h``."""


@lru_cache(maxsize=1)
def _pool(cores: int, process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - a forked process has none of the threads
    """Keep the threads: an analysis asks for them a hundred times."""
    share_one_heap()
    return ThreadPoolExecutor(cores, thread_name_prefix=_THREAD_NAME)


@cache
def share_one_heap() -> None:
    """Let threads share one heap, where glibc has any to choose: what one of them frees, another one takes."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
