"""A run folder: the names of everything in it, and its record.

This module owns every file name inside a run folder; nobody else joins one. Importing it does not load pydantic.
"""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import StoreError
from pipeline_lab.runs import run_tables
from pipeline_lab.runs.record import GONE, RunRecord, RunState, RunStatus, explain_loss

BEGIN_S = 300.0
"""A run without a supervisor this long after its creation is lost; on a busy machine the start alone takes a minute."""


RECORD = "run.json"


class _Inside:
    """The name of something inside a run folder."""

    def __init__(self, *parts: str) -> None:
        self._parts = parts

    def __get__(self, folder: "RunFolder", _owner: type) -> Path:
        return folder.path.joinpath(*self._parts)


@dataclass(frozen=True)
class RunFolder:
    """Names of everything inside one run folder."""

    path: Path

    record = _Inside(RECORD)
    source = _Inside("pipeline.py")
    """The pipeline's source as exported."""
    probed_source = _Inside("pipeline.probed.py")
    """The source with the sample probe written in; only for records that do not carry their own ids."""
    events = _Inside("events.jsonl")
    steps = run_tables.STEPS
    samples = run_tables.SAMPLES
    outputs = run_tables.OUTPUTS
    names = run_tables.NAMES
    evaluated = run_tables.EVALUATED
    labels = run_tables.LABELS
    padding = run_tables.PADDING
    resources = run_tables.RESOURCES
    model = run_tables.MODEL
    blocks = run_tables.BLOCKS
    written = _Inside("written.json")
    """The stages of the pipeline as it was written."""
    recipe = _Inside("recipe.json")
    """The calls that made the datasets of a user's script, with their places."""
    sources = _Inside("sources")
    """Copies of the user's files that the recipe speaks of."""
    files = _Inside("files.json")
    trials = _Inside("trials.jsonl")
    """Runs and races of a search, each with its outcome."""
    history = _Inside("history.jsonl")
    """Steps of a search, with reasons."""
    fix = _Inside("fix.json")
    """What a search for better input of a script found: diff, proof, gain."""
    log = _Inside("worker.log")
    """Standard output and error of the worker."""
    cancel_flag = _Inside("cancel")
    reserve = _Inside(".reserve")
    """Disk space that is given up so that the end of a run can be written to a full disk."""
    opened = _Inside("opened")
    """The log that this run was opened from, as it came; only in runs that were not recorded here."""
    left_out = _Inside("left_out.json")
    """Names of files that came with an opened log and are no part of it."""
    one_job = _Inside(".one_job")
    """Marks an opened log whose parts the user said are one job, though their hosts or frameworks differ."""
    unkept = _Inside(".unkept")
    """Marks an opened log that the user has not kept yet."""
    lock = _Inside(".lock")
    scratch = _Inside(".scratch")
    """Temporary files, such as a window being flushed or a cache; may be deleted after the run."""
    profile = _Inside("plugins", "profile")
    analysis = _Inside("analysis")
    """Cached results; may be deleted."""

    @property
    def id(self) -> str:
        return self.path.name

    def arm(self, number: int) -> "RunFolder":
        """Return the part of a race that belongs to one arm."""
        return RunFolder(self.path / "arms" / str(number))

    def process(self, rank: int) -> "RunFolder":
        """Return the part of a run that another process than the first wrote: its events and tables."""
        return RunFolder(self.path / "processes" / str(rank))

    def window(self, name: str) -> Path:
        return self.profile / name

    def windows(self) -> list[Path]:
        """Return the session folders of all windows on disk, oldest first."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self.profile) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir())
            return [self.profile / name for name in names]
        return []


def read_record(folder: RunFolder) -> RunRecord:
    """Read ``run.json``; a live run whose supervisor is gone reads as lost.

    Raises:
        StoreError: There is no record, or it is damaged.
    """
    path = os.fspath(folder.path)
    record = parse_record(path, version_of_record(path))
    if reason := find_loss(path, record.status):
        return replace(record, status=record.status.change(RunState.LOST, reason=reason))
    return record


FileVersion = tuple[int, int, int]
"""Inode, size and time of change (ns) of a file, of which another one has others."""


def version_of_record(folder: str) -> FileVersion:
    """Return which file the record of a run is; the folder is given as text, since lists hold thousands.

    Raises:
        StoreError: There is no record.
    """
    path = f"{folder}/{RECORD}"
    try:
        found = os.stat(path)  # noqa: PTH116  (no path is made)
    except OSError as error:
        raise StoreError(f"Cannot read {path}: {error}.") from None
    return found.st_ino, found.st_size, found.st_mtime_ns


@lru_cache(maxsize=1000)
def parse_record(folder: str, _version: FileVersion) -> RunRecord:
    """Read the record of a run as it stands, again only when its file changes.

    Raises:
        StoreError: It cannot be read, or is damaged.
    """
    path = f"{folder}/{RECORD}"
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123  (no path is made)
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"Cannot read {path}: {error}.") from None
    return RunRecord.from_json(text, os.path.basename(folder))  # noqa: PTH119  also for a run that was copied or renamed by hand


def write_record(folder: RunFolder, record: RunRecord) -> None:
    """Write ``run.json``."""
    write_whole(folder.record, record.to_json())


def write_whole(path: Path, text: str) -> None:
    """Write a file by rename, so that a reader sees the old or the new one, never half of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def update_record(folder: RunFolder, change: Callable[[RunRecord], RunRecord]) -> RunRecord:
    """Read, change and write a record while no other process does.

    Raises:
        StoreError: The record is damaged or cannot be written.
    """
    try:
        with _locked(folder.lock):
            record = change(RunRecord.from_json(folder.record.read_text(encoding="utf-8")))
            write_record(folder, record)
            return record
    except OSError as error:
        raise StoreError(f"Cannot write {folder.record}: {error.strerror}.") from None


def add_environment(folder: RunFolder, environment: dict[str, Any]) -> None:
    """Add to what a run's record says about its machine and software.

    Raises:
        StoreError: The record is damaged or cannot be written.
    """
    update_record(folder, lambda record: replace(record, environment={**record.environment, **environment}))


def end_run(folder: RunFolder, state: RunState, reason: str = "", exit_code: int | None = None) -> None:
    """Write down how a run ended, unless it is over; a run that was deleted meanwhile is left alone.

    The reserve makes room for it on a full disk.
    """

    def over(record: RunRecord) -> RunRecord:
        if not record.status.state.is_live:
            return record
        status = record.status.change(state, reason=reason, ended_s=time.time(), supervisor=None, exit_code=exit_code)
        return replace(record, status=status)

    with contextlib.suppress(OSError):  # who records trains as well, and goes on
        folder.reserve.unlink(missing_ok=True)
    with contextlib.suppress(StoreError):  # a deleted folder, or a full disk: the run reads as lost
        update_record(folder, over)
    with contextlib.suppress(OSError):
        folder.cancel_flag.unlink(missing_ok=True)


def find_loss(folder: str, status: RunStatus) -> str:
    """Say why a run that has not ended is lost; empty while it may be running, and once it is over."""
    if not status.state.is_live:
        return ""
    if status.supervisor is None:
        return GONE if time.time() - status.created_s > BEGIN_S else ""
    return explain_loss(status.supervisor, Path(folder))


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
