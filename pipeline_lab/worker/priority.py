"""Let a thread take processor time only where nobody else wants it."""

import os
import threading

NICENESS = 10


def lower_own_priority() -> None:
    """Lower the calling thread's priority; on Linux it belongs to the thread alone, not to the process.

    Threads that it starts inherit it, and it cannot be raised again without privileges.
    """
    thread = threading.get_native_id()
    os.setpriority(os.PRIO_PROCESS, thread, max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))
