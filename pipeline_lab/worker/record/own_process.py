"""This process: its resident memory, its threads and their priority."""

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any


class ResidentMemory:
    """Reads the resident memory; a reading costs about a microsecond."""

    def __init__(self) -> None:
        self._handle = os.open("/proc/self/statm", os.O_RDONLY)
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")

    def read_bytes(self) -> int:
        return int(os.pread(self._handle, 128, 0).split()[1]) * self._page_bytes


def return_free_memory() -> None:
    """Return freed memory to the system; otherwise glibc keeps it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


NICENESS = 10


def lower_own_priority() -> None:
    """Lower the calling thread's priority, on Linux that of the thread alone.

    Threads that it starts inherit it, and raising it again needs privileges.
    """
    thread = threading.get_native_id()
    os.setpriority(os.PRIO_PROCESS, thread, max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))


@contextlib.contextmanager
def run_beside(name: str, work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run ``work`` on a thread while the block runs; the event tells it to end.

    Raises:
        OSError: What ended the work early, such as a full disk; raised at the end of the block.
    """
    end, errors = threading.Event(), list[OSError]()

    def run() -> None:
        try:
            work(end)
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
    if errors:
        raise errors[0]


def clear_on_thread(iterators: list[Any]) -> threading.Thread:
    """Give up iterators on a thread: destroying one waits for its autotuner's next round, up to a minute."""
    thread = threading.Thread(target=iterators.clear, name="iterator-end", daemon=True)
    thread.start()
    return thread
