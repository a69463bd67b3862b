"""Write ``events.jsonl``: whole lines or nothing, so that even a full disk leaves no torn line in the middle."""

import contextlib
import os
import threading
from pathlib import Path

from pipeline_lab.runs.events import Event, format_event


class EventLog:
    """Append events; safe to use from several threads, each line reaches the file at once."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, event: Event) -> None:
        """Append one event.

        Raises:
            OSError: The disk is full; the file is as it was before.
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
