"""Write ``events.jsonl``, in whole lines or not at all, and the clock that its times come from."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pipeline_lab.runs.run_events import Event, format_event


class Clock:
    """Nanoseconds since the epoch that never jump, even when the system time is changed.

    Attributes:
        offset_ns: What it adds to ``perf_counter``.
    """

    def __init__(self) -> None:
        self.offset_ns = find_offset_ns(time.perf_counter_ns)

    def now_ns(self) -> int:
        return self.offset_ns + time.perf_counter_ns()


def find_offset_ns(now_ns: Callable[[], int]) -> int:
    """Return how far the system's clock is ahead of another; the quickest look of some, for a busy machine interrupts a few."""
    looks = [(now_ns(), time.time_ns(), now_ns()) for _ in range(5)]
    before_ns, system_ns, after_ns = min(looks, key=lambda look: look[2] - look[0])
    return system_ns - (before_ns + after_ns) // 2


class EventLog:
    """Appends events, each line at once. Thread-safe."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, event: Event) -> None:
        """Append one event.

        Raises:
            OSError: The disk is full; the file is unchanged.
        """
        line = format_event(event).encode()
        with self._lock:
            size_bytes = os.fstat(self._handle).st_size
            try:
                written = 0
                while written < len(line):
                    written += os.write(self._handle, line[written:])
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._handle, size_bytes)
                raise
