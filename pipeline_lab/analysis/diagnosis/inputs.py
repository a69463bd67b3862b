"""What a run's diagnosis is made from, known from file names alone: cheap to import and to ask."""

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, filterfalse
from pathlib import Path

from pipeline_lab.runs.run_folder import RunFolder

Progress = Callable[[int, int, str], None]
"""Told how many traces are done, how many there are, and the next one's name."""


def is_run(path: Path) -> bool:
    """Say whether the folder is a run of ours."""
    return RunFolder(path).record.is_file()


_ENDINGS = (".xplane.pb", ".xplane.pb.gz")


def window_files(folder: RunFolder) -> list[Path]:
    """Return the trace files of a run, oldest window first; gzipped ones count."""
    return list(map(Path, window_paths(folder)))


def window_paths(folder: RunFolder) -> list[str]:
    """Return what :func:`window_files` does as text: making paths takes longer than listing, and a run may have ten thousand."""
    return WindowList(folder).look()


NEWEST = 8
"""Windows of a run in progress that other processes may still write to."""


class WindowList:
    """The trace files of a run in progress.

    Windows that are no longer among the newest are settled: they are not looked into again, until one that is there no longer, or
    one without a trace that has got one, makes it look into all of them.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._top = os.fspath(folder.profile.absolute())
        self._start_over()

    def _start_over(self) -> None:
        self._settled: dict[str, None] = {}
        self._settled_files: list[str] = []
        self._settled_digest = hashlib.sha256()
        self._empty: list[str] = []
        self._newest_files: list[str] = []

    def look(self, *, everywhere: bool = False) -> list[str]:
        """Return the paths of the trace files, oldest window first; gzipped ones count."""
        windows = _names_in(self._top)
        newest = self._not_settled(windows)
        if everywhere or newest is None or any(map(self._traces, self._empty)):
            self._start_over()
            newest = sorted(windows, key=_by_number)
        changing = {window: self._traces(window) for window in newest}
        settling = list(changing)[:-NEWEST]
        for window in settling:
            files = changing.pop(window)
            self._settled_digest.update(_versions(files))
            self._settled_files += files
            self._empty += [] if files else [window]
        self._settled |= dict.fromkeys(settling)
        self._newest_files = list(chain.from_iterable(changing.values()))
        return self._settled_files + self._newest_files

    def digest(self) -> bytes:
        """Return what changes when a file does that the last look found; of settled windows it is kept."""
        digest = self._settled_digest.copy()
        digest.update(_versions(self._newest_files))
        return digest.digest()

    def _not_settled(self, windows: Sequence[str]) -> list[str] | None:
        """Return the others, oldest first; None where they do not just follow the settled ones, or are too few."""
        others = sorted(filterfalse(self._settled.__contains__, windows), key=_by_number)
        are_all_there = len(windows) - len(others) == len(self._settled)
        follow = not self._settled or (
            len(others) >= NEWEST and _by_number(next(reversed(self._settled))) < _by_number(others[0])
        )
        return others if are_all_there and follow else None

    def _traces(self, window: str) -> list[str]:
        names = sorted(_names_in(f"{self._top}/{window}"))
        return [f"{self._top}/{window}/{name}" for ending in _ENDINGS for name in names if name.endswith(ending)]


def _by_number(window: str) -> tuple[int, str]:
    return len(window), window  # the 10,000th has a digit more


def _versions(files: Iterable[str]) -> bytes:
    return os.fsencode("".join(map(version_of, files)))


def version_of(file: str) -> str:
    """Return a file's path with what changes when it does; empty if it is gone."""
    try:
        status = os.stat(file)  # noqa: PTH116  (no path is made)
    except OSError:
        return ""
    return f"\0{file}\0{status.st_size}\0{status.st_mtime_ns}"


def _names_in(folder: str) -> list[str]:
    """Return what lies in a folder, in any order; of ten thousand windows, patterns would take seconds."""
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []


def opened_log(folder: RunFolder) -> Path | None:
    """Return the log that a run was opened from: its only file, else the folder that holds its files.

    None for a run that was recorded here.
    """
    if not folder.opened.is_dir():
        return None
    top = _step_into(folder.opened)
    inner = top
    while inner.is_dir() and (deeper := _step_into(inner)) != inner:
        inner = deeper
    if inner.is_file():
        return inner
    return folder.opened if top.name == "plugins" else top  # a session's name comes from the folders above it


def opened_files(folder: RunFolder) -> list[Path]:
    """Return every file of the log that a run was opened from; none for a run that was recorded here."""
    return sorted(path for path in folder.opened.rglob("*") if path.is_file())


def _step_into(folder: Path) -> Path:
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 else folder
