"""Runs that the user's own job records into: how its processes begin and join them.

The recording process is the run's supervisor, so a killed job leaves a run that reads as lost.

:class:`Run` is a run that a script waited for.
"""

import contextlib
import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline_lab.errors import StoreError
from pipeline_lab.hooks import Displayed
from pipeline_lab.runs.record import RunRecord, RunState, RunStatus, this_process
from pipeline_lab.runs.store import RunFolder, RunStore, read_record

JOIN_S = 60.0
"""How long a process waits for the first process of its job to begin the run."""


def begin(store: RunStore, name: str, *, tags: tuple[str, ...], environment: dict[str, Any] | None = None) -> RunFolder:
    """Make the folder of a run that this process records into.

    Raises:
        StoreError: The store is locked, or cannot be written.
    """
    now_s = time.time()
    status = RunStatus(RunState.RUNNING, created_s=now_s, started_s=now_s, supervisor=this_process())
    return store.add(RunRecord("", name.strip()[:200] or "job", status, environment=environment or {}, tags=tags))


def announce(store: RunStore, job: str, folder: RunFolder) -> None:
    """Let the other processes of a job find the run; ``job`` is the key that they share.

    Raises:
        StoreError: The store cannot be written.
    """
    place = _meeting_place(store, job)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        scratch = place.with_suffix(f".{os.getpid()}")
        scratch.write_text(folder.id, encoding="utf-8")
        scratch.replace(place)
    except OSError as error:
        raise StoreError(f"Cannot write to the run store {store.root}: {error.strerror}.") from None


def join(store: RunStore, job: str, patience_s: float = JOIN_S) -> RunFolder | None:
    """Return the run that the first process of a job announced; None if none is live within the patience."""
    place, deadline_s = _meeting_place(store, job), time.monotonic() + patience_s
    while True:
        with contextlib.suppress(OSError, StoreError):
            folder = store.folder(place.read_text(encoding="utf-8").strip())
            if read_record(folder).status.state.is_live:  # lost, if its first process was killed
                return folder
        if time.monotonic() >= deadline_s:
            return None
        time.sleep(0.2)


def forget(store: RunStore, job: str) -> None:
    """Take an announcement back."""
    _meeting_place(store, job).unlink(missing_ok=True)


def _meeting_place(store: RunStore, job: str) -> Path:
    return store.root / ".jobs" / hashlib.sha256(job.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Run(Displayed):
    """A run that is over: done, or cancelled with what it had recorded; a notebook shows its verdict and numbers.

    Attributes:
        folder: Names of everything that it left.
        record: Its ``run.json``.
    """

    folder: RunFolder
    record: RunRecord

    @property
    def id(self) -> str:
        return self.folder.id

    @property
    def path(self) -> Path:
        """What ``pipeline_lab.analyze`` takes."""
        return self.folder.path
