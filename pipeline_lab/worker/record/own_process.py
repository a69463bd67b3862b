"""This process: its resident memory, and the priority of its threads."""

import ctypes
import os
import threading


class ResidentMemory:
    """Reads the resident memory; a reading costs about a microsecond."""

    def __init__(self) -> None:
        self._handle = os.open("/proc/self/statm", os.O_RDONLY)
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")

    def read_bytes(self) -> int:
        return int(os.pread(self._handle, 128, 0).split()[1]) * self._page_bytes


def return_free_memory() -> None:
    """Give memory that was freed back to the system; glibc keeps it for the process otherwise."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


NICENESS = 10


def lower_own_priority() -> None:
    """Lower the calling thread's priority; on Linux it belongs to the thread alone, not to the process.

    Threads that it starts inherit it, and it cannot be raised again without privileges.
    """
    thread = threading.get_native_id()
    os.setpriority(os.PRIO_PROCESS, thread, max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))
