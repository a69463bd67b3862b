"""Logs that somebody opened: a run around files that another job recorded.

A log arrives in a folder of its own beside the runs and becomes a run by a rename, so that there is never half of one.
It is unkept at first: unless somebody keeps it, it goes a day later.
"""

import contextlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from pipeline_lab.errors import StoreError
from pipeline_lab.folders import files_below
from pipeline_lab.runs.record import RunRecord, RunState, RunStatus
from pipeline_lab.runs.store import RunFolder, RunStore, read_record, update_record

TAG = "log"
UNKEPT_S = 24 * 3600.0
"""How long a log stays that nobody keeps, and an arrival that never ended."""
BLOCK = 16 << 20
"""Bytes that are copied at a time."""
Copied = Callable[[int, int], None]
"""Told how many bytes have been copied, and how many there are."""
_DEEPEST, _LONGEST = 12, 120
_LOOSE = PurePosixPath("plugins", "profile", "opened")
PART_OF_A_LOG = re.compile(
    r".*((xplane|input_pipeline|overview_page)\.pb|\.trace|trace\.json)(\.gz)?"  # any job's
    r"|run\.json|files\.json|events\.jsonl|pipeline\.py|.*\.arrows"  # a run's of ours
)
"""Names of files that can belong to a log; browsers read the pattern too."""
_EVENTS_FILE = re.compile(r".*\.tfevents\..*")


def place(name: str) -> PurePosixPath:
    """Return where a file of that name goes inside an arrival; no name leads out of it.

    Folders keep their names, because sessions are named by them. A loose trace goes where TensorBoard looks for one.
    """
    parts = [re.sub(r"[^A-Za-z0-9._@+=-]", "_", part).lstrip(".") for part in re.split(r"[/\\]", name)]
    kept = [part[-_LONGEST:] for part in parts if part][-_DEEPEST:] or ["log"]
    loose = len(kept) == 1 and kept[0].endswith(".xplane.pb")
    return _LOOSE / kept[0] if loose else PurePosixPath(*kept)


def new_arrival(store: RunStore) -> Path:
    """Make a folder for a log that is about to come; what nobody kept or finished goes first.

    Raises:
        StoreError: The store is locked, or cannot be written.
    """
    store.check_unlocked()
    arrival = store.arrivals / secrets.token_hex(16)
    discard_stale(store, time.time())
    try:
        arrival.mkdir(parents=True)
    except OSError as error:
        raise StoreError(f"Cannot write to the run store {store.root}: {error.strerror}.") from None
    return arrival


def bring(path: Path, arrival: Path, copied: Copied | None = None) -> None:
    """Put a log of this machine into an arrival: linked where it lies on the same disk, else copied.

    Of a folder only what can belong to a log comes, so that checkpoints beside it stay where they are.

    Args:
        path: The log.
        arrival: Where it goes.
        copied: Told of every block that was copied; whatever it raises ends the copying.

    Raises:
        StoreError: There is nothing to bring, it cannot be read, or the disk is full.
    """
    try:
        files = [path] if path.is_file() else _log_files(path)
        total, done = sum(file.stat().st_size for file in files), 0
        for file in files:
            inside = file.relative_to(path.parent).as_posix()
            for size_bytes in _take(file, arrival / place(inside)):
                done += size_bytes
                if copied is not None:
                    copied(done, total)
    except OSError as error:
        raise StoreError(f"{error.filename or path} cannot be brought into the store: {error.strerror}.") from None
    if not files:
        raise StoreError(f"{path} holds no profile log; name a trace file, a log directory, an archive or a run.")


def adopt(store: RunStore, arrival: Path, name: str) -> RunFolder:
    """Make a run of what has arrived.

    Raises:
        StoreError: The store cannot be written.
    """

    def take(folder: RunFolder) -> None:
        arrival.rename(folder.opened)
        folder.unkept.touch()

    status = RunStatus(RunState.DONE, created_s=time.time())
    return store.add(RunRecord("", name.strip()[:200] or "log", status, tags=(TAG,)), take)


def note_reading(folder: RunFolder, problem: str) -> None:
    """Note in an opened log's record whether it could be read; nothing happens to runs that were recorded here.

    Args:
        folder: The run.
        problem: Why it could not, as a sentence; empty if it could.
    """
    state = RunState.FAILED if problem else RunState.DONE
    if folder.opened.is_dir() and read_record(folder).status.state is not state:
        update_record(folder, lambda record: replace(record, status=record.status.change(state, reason=problem)))


def is_unkept(folder: RunFolder) -> bool:
    return folder.unkept.exists()


def keep(folder: RunFolder) -> None:
    folder.unkept.unlink(missing_ok=True)


def discard_stale(store: RunStore, now_s: float) -> None:
    """Delete unkept logs and unfinished arrivals older than :data:`UNKEPT_S`; ``now_s`` since the epoch."""
    for entry in _entries(store.arrivals):
        with contextlib.suppress(OSError):
            if now_s - entry.stat().st_mtime > UNKEPT_S:
                shutil.rmtree(entry, ignore_errors=True)
    for entry in _entries(store.root):
        folder = RunFolder(entry)
        with contextlib.suppress(StoreError):
            if is_unkept(folder) and now_s - read_record(folder).status.created_s > UNKEPT_S:
                store.remove(folder.id)


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _log_files(folder: Path) -> list[Path]:
    """Return the plain files of a log, no links; of a log without any its events files, which explain what it is."""
    files = [file for file in files_below(folder, StoreError) if not file.is_symlink()]
    return [file for file in files if PART_OF_A_LOG.fullmatch(file.name)] or [
        file for file in files if _EVENTS_FILE.fullmatch(file.name)
    ]


def _take(file: Path, target: Path) -> Iterator[int]:
    """Link or copy a file; yields the length of each block that was copied."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file, target)
    except FileExistsError:  # copying would write through the link into the user's own file
        raise StoreError(
            f"{file} has the same name as another file of the log once {target.name!r} is plain."
        ) from None
    except OSError:  # another disk, or one without links
        with file.open("rb") as source, target.open("wb") as out:
            while block := source.read(BLOCK):
                out.write(block)
                yield len(block)
