"""What is done to a command in the middle of its work."""

import errno
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

from benchmarks.faults.case import Case
from benchmarks.faults.jobs import Job

PAUSE_S = 3.0
SMALL_DISK = "size=150m"
"""More than the app leaves free of a disk, so that an upload may begin."""
FILLER = ".filler"


def no_room(case: Case, job: Job) -> bool:
    """Let no file of the worker grow any more, as on a full disk."""
    found = case.processes(job.worker)
    for each in found:
        with suppress(psutil.Error):
            each.rlimit(resource.RLIMIT_FSIZE, (0, 0))
    return bool(found)


def pause(case: Case, job: Job) -> bool:
    found = case.signal(job.worker, signal.SIGSTOP)
    time.sleep(PAUSE_S)
    return case.signal(job.worker, signal.SIGCONT) and found


def of_command(number: int) -> "Fault":
    def send(case: Case, _: Job) -> bool:
        assert case.process is not None
        if case.process.poll() is None:
            case.process.send_signal(number)
            return True
        return False

    return send


def store_gone(case: Case, _: Job) -> bool:
    """Take the store away, as a disk that is pulled out."""
    case.store.mkdir(exist_ok=True)
    case.store.rename(case.folder / "gone")
    time.sleep(PAUSE_S)
    shutil.rmtree(case.store, ignore_errors=True)
    (case.folder / "gone").rename(case.store)
    return True


def on_small_disk(case: Case) -> None:
    """Give a case a store on a disk of its own, for which this needs the right to mount one."""
    case.store.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", SMALL_DISK, "tmpfs", str(case.store)], check=True)


def full_disk(case: Case, _: Job) -> bool:
    """Fill the store's disk to its last byte."""
    with (case.store / FILLER).open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            return error.errno == errno.ENOSPC


def make_room(case: Case) -> None:
    (case.store / FILLER).unlink(missing_ok=True)


def take_disk_away(case: Case) -> None:
    if case.store.is_mount():
        subprocess.run(["umount", "--lazy", str(case.store)], check=True)


Fault = Callable[[Case, Job], bool]
FAULTS: dict[str, Fault] = {
    "kill-worker": lambda case, job: case.signal(job.worker, signal.SIGKILL),
    "term-worker": lambda case, job: case.signal(job.worker, signal.SIGTERM),
    "stop-worker": pause,
    "no-room": no_room,
    "kill-supervisor": lambda case, job: case.signal(job.supervisor, signal.SIGKILL),
    "kill-command": of_command(signal.SIGKILL),
    "term-command": of_command(signal.SIGTERM),
    "interrupt": of_command(signal.SIGINT),
    "store-gone": store_gone,
    "full-disk": full_disk,
}
"""Each does its harm and says whether there was anything to harm."""
