"""Opened logs: runs around files that another job recorded.

A log arrives in a separate folder and becomes a run by one rename, so a run is never incomplete. Unless the user keeps
it, it is deleted a day later.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from pipeline_lab.errors import StoreError
from pipeline_lab.folders import files_below
from pipeline_lab.runs.record import RunRecord, RunState, RunStatus
from pipeline_lab.runs.run_folder import RunFolder, read_record, update_record, write_whole
from pipeline_lab.runs.store import RunStore

TAG = "log"
UNKEPT_S = 24 * 3600.0
"""How long unkept logs and unfinished arrivals stay."""
BLOCK = 16 << 20
"""Bytes per copied block."""
Copied = Callable[[int, int], None]
"""Called with the bytes copied so far and in all."""
MOST_LEFT_OUT = 200
"""Names that are kept of files that were left out."""
_DEEPEST, _LONGEST = 12, 120
_LOOSE = PurePosixPath("plugins", "profile", "opened")
PART_OF_A_LOG = re.compile(
    r".*((xplane|input_pipeline|overview_page)\.pb|\.trace|trace\.json)(\.gz)?"  # any job
    r"|run\.json|files\.json|events\.jsonl|pipeline\.py|.*\.arrows"  # a run of Pipeline Lab
)
"""Names of files that can belong to a log; browsers use the pattern too."""
_EVENTS_FILE = re.compile(r".*\.tfevents\..*")


def place(name: str) -> PurePosixPath:
    """Return the path of a file inside an arrival; no name leads out of it.

    Folders keep their names, which name sessions. A loose trace goes where TensorBoard looks for one.
    """
    parts = [re.sub(r"[^A-Za-z0-9._@+=-]", "_", part).lstrip(".") for part in re.split(r"[/\\]", name)]
    kept = [part[-_LONGEST:] for part in parts if part][-_DEEPEST:] or ["log"]
    loose = len(kept) == 1 and kept[0].endswith(".xplane.pb")
    return _LOOSE / kept[0] if loose else PurePosixPath(*kept)


def new_arrival(store: RunStore) -> Path:
    """Make a folder for a new arrival; stale logs and arrivals are deleted first.

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
    """Put a local log into an arrival: linked if on the same disk, else copied.

    Of a folder, only files that can belong to a log are taken, not checkpoints beside them.

    Args:
        path: The log.
        arrival: Its folder.
        copied: Called after every block; an exception ends the copying.

    Raises:
        StoreError: There is no log, it cannot be read, or the disk is full.
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
        raise StoreError(f"{error.filename or path} cannot be copied into the store: {error.strerror}.") from None
    if not files:
        raise StoreError(f"{path} holds no profile log; name a trace file, a log directory, an archive or a run.")


def adopt(store: RunStore, arrival: Path, name: str) -> RunFolder:
    """Turn an arrival into a run.

    Raises:
        StoreError: The store cannot be written.
    """

    def take(folder: RunFolder) -> None:
        arrival.rename(folder.opened)
        folder.unkept.touch()

    status = RunStatus(RunState.DONE, created_s=time.time())
    return store.add(RunRecord("", name.strip()[:200] or "log", status, tags=(TAG,)), take)


def split(store: RunStore, folder: RunFolder, parts: Sequence[tuple[str, Sequence[Path]]]) -> list[RunFolder]:
    """Turn an opened log into one run per part; what belongs to none of them is deleted with it.

    Args:
        store: Where the log is.
        folder: The log.
        parts: Name and files or folders of each part.

    Raises:
        StoreError: The store is locked or cannot be written.
    """
    runs = []
    for name, paths in parts:
        arrival = new_arrival(store)
        for path in paths:
            target = arrival / (place(path.name) if path.is_file() else PurePosixPath(path.name))
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
        runs.append(adopt(store, arrival, name))
    store.remove(folder.id)
    return runs


def note_left_out(folder: RunFolder, names: Sequence[str]) -> None:
    """Keep the names of files that came with an opened log and are no part of it."""
    known = [*left_out(folder), *names]
    write_whole(folder.left_out, json.dumps(list(dict.fromkeys(known))[:MOST_LEFT_OUT]))


def left_out(folder: RunFolder) -> tuple[str, ...]:
    """Return the names of files that came with an opened log and are no part of it."""
    with contextlib.suppress(OSError, ValueError):
        return tuple(map(str, json.loads(folder.left_out.read_text(encoding="utf-8"))))
    return ()


def note_one_job(folder: RunFolder) -> None:
    """Keep the user's answer that all parts of an opened log are one job.

    Raises:
        StoreError: The store cannot be written.
    """
    try:
        folder.one_job.touch()
    except OSError as error:
        raise StoreError(
            f"The answer cannot be kept, because {folder.path} cannot be written: {error.strerror}."
        ) from None


def note_reading(folder: RunFolder, problem: str) -> None:
    """Record whether an opened log could be read; runs that were recorded here are not changed.

    Args:
        folder: The run.
        problem: Why not, as a sentence; empty if it could.
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
    """Return the plain files of a log, no links; without any, its events files, which explain what it is."""
    files = [file for file in files_below(folder, StoreError) if not file.is_symlink()]
    return [file for file in files if PART_OF_A_LOG.fullmatch(file.name)] or [
        file for file in files if _EVENTS_FILE.fullmatch(file.name)
    ]


def _take(file: Path, target: Path) -> Iterator[int]:
    """Link or copy a file; yields the length of each copied block."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file, target)
    except FileExistsError:  # copying would write through the link into the user's file
        raise StoreError(
            f"{file} and another file of the log get the same name {target.name!r}; rename one of them."
        ) from None
    except OSError:  # another disk, or one without links
        with file.open("rb") as source, target.open("wb") as out:
            while block := source.read(BLOCK):
                out.write(block)
                yield len(block)
