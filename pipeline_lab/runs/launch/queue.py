"""One measurement at a time on a machine: tickets keep the order, one lock guards the device.

Every waiting or running supervisor holds a ticket, a file that sorts by the time it was drawn and that its owner keeps
locked. The kernel releases the lock when the owner dies, so a ticket that can be locked is dead. The worker inherits the
measurement lock, which is held until supervisor and worker are both gone.
"""

import contextlib
import fcntl
import secrets
import time
from pathlib import Path
from typing import IO

from pipeline_lab.errors import StoreError
from pipeline_lab.folders import runtime_folder


class MeasurementLock:
    """The right to measure on this machine. Open it before the worker starts, so that the worker inherits it."""

    def __init__(self) -> None:
        self._file = (runtime_folder() / "measurement.lock").open("a")

    def fileno(self) -> int:
        return self._file.fileno()

    def acquire(self) -> bool:
        """Take the lock if it is free; true on success."""
        return _lock(self._file, fcntl.LOCK_EX)

    def close(self) -> None:
        """Release it, for the worker too."""
        if not self._file.closed:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self._file.close()


class QueueTurn:
    """A run's place in the queue, until ``close``.

    Raises:
        StoreError: No ticket can be drawn because the disk is full or the folder is not writable.
    """

    def __init__(self, run_id: str) -> None:
        folder = _queue_folder()
        draft = folder / f".{secrets.token_hex(8)}"
        self._path = folder / f"{time.time_ns():020d}-{run_id}"
        try:
            self._file = draft.open("w")
            fcntl.flock(self._file, fcntl.LOCK_EX)  # before anybody can see it and consider it dead
            draft.rename(self._path)
        except OSError as error:
            raise StoreError(f"Cannot queue the run in {folder}: {error.strerror}.") from None

    @property
    def runs_before(self) -> int:
        return sum(name < self._path.name for name in _tickets())

    def has_come(self, lock: MeasurementLock) -> bool:
        """Take the lock if this run is the first in the queue; true if it has it now."""
        return self.runs_before == 0 and lock.acquire()

    def close(self) -> None:
        """Leave the queue."""
        self._path.unlink(missing_ok=True)
        self._file.close()


def runs_before(run_id: str) -> int | None:
    """Return how many runs are ahead of this one; None if it is not queued."""
    names = _tickets()
    own = next((name for name in names if name.partition("-")[2] == run_id), None)
    return None if own is None else names.index(own)


def is_measuring() -> bool:
    """Say whether a measurement runs or is queued on this machine."""
    return bool(_tickets())


def _tickets() -> list[str]:
    """Return the names of the tickets whose owners are alive, in order; dead tickets are deleted."""
    living = []
    for path in sorted(_queue_folder().glob("[0-9]*-*")):
        if _is_held(path):
            living.append(path.name)
        else:
            path.unlink(missing_ok=True)
    return living


def _is_held(path: Path) -> bool:
    with contextlib.suppress(FileNotFoundError), path.open() as file:
        return not _lock(file, fcntl.LOCK_SH)
    return False


def _lock(file: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _queue_folder() -> Path:
    folder = runtime_folder() / "queue"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
