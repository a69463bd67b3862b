"""Who watches over a run, and whether it still does, be it on this machine or on another one that shares the store."""

import contextlib
import os
import time
from pathlib import Path

import psutil

from pipeline_lab.runs.record import Process

SILENT_S = 86_400.0
"""A run of another machine that has written nothing for so long is taken for lost; its pid means nothing here.

Long on purpose: a run that waits for its turn, or a search that waits for a race, writes nothing either.
"""

GONE = "The process that watched over this run is gone (killed, or the machine restarted)."
SILENT = "This run belongs to another machine or container, and has written nothing for a day."


def this_process() -> Process:
    """Return the calling process's identity."""
    return Process(os.getpid(), psutil.Process().create_time(), os.uname().nodename, _boot(), _numbering())


def is_alive(process: Process) -> bool:
    """Say whether exactly that process of this machine still runs."""
    try:
        found = psutil.Process(process.pid)
        return abs(found.create_time() - process.created_s) < 1 and found.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def explain_loss(process: Process, folder: Path) -> str:
    """Say why a run is lost; empty while it may be going on.

    Args:
        process: Who watches over it; one that was written down without its machine counts as one of this machine.
        folder: Where the run lies.
    """
    is_same_host = process.host in ("", os.uname().nodename)
    if is_same_host and process.boot not in ("", _boot()):
        return GONE
    if is_same_host and process.numbering in ("", _numbering()):
        return "" if is_alive(process) else GONE
    return SILENT if time.time() - _last_sign_s(folder) > SILENT_S else ""


def _last_sign_s(folder: Path) -> float:
    """Return when a run wrote into its files last, seconds since the epoch; its load is noted twice a second."""
    written_s = 0.0
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if entry.is_file():  # the folders hold what analyses write, too
                    written_s = max(written_s, entry.stat().st_mtime)
    return written_s


def _boot() -> str:
    """Name this start of the machine; empty where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _numbering() -> str:
    """Name what the pids of this process count in: containers have one of their own; empty where the system does not say."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
