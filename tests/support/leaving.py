"""Tasks whose process is lost; nothing heavy is imported, for each is done in a process of its own."""

import os
import signal
from pathlib import Path


def leave_once(path: Path) -> str:
    """Die like a process that ran out of memory, but only the first time; say the name the next time."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return path.name
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


def leave(_: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0
