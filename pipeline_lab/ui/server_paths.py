"""Logs that lie on the machine the app runs on: who may open them, and how they become runs.

Whoever reaches the app could read any file through such a path. So it is allowed by default only where the app
answers this machine alone; ``PIPELINE_LAB_PATHS`` names the folders that may be opened from anywhere else.
"""

import contextlib
import glob
import itertools
import os
import shutil
from pathlib import Path

import streamlit as st

from pipeline_lab.errors import StoreError
from pipeline_lab.runs import opened_logs
from pipeline_lab.runs.store import RunFolder, RunStore
from pipeline_lab.ui.security import LOCAL_HOSTS

_OFF = (
    "Paths on the server are off, because the app answers other machines too; name the folders that may be opened in "
    "PIPELINE_LAB_PATHS."
)


def problem() -> str:
    """Say why no path on the server may be opened; empty where some may."""
    allowed = _allowed_folders()
    return "" if allowed or (allowed is None and is_local()) else _OFF


def open_path(store: RunStore, text: str, copied: opened_logs.Copied) -> RunFolder:
    """Make a run of a trace file, a log directory, an archive or a run folder; a run of the store is itself.

    Args:
        store: Where the run goes.
        text: The path as the user wrote it.
        copied: As for :func:`~pipeline_lab.runs.opened_logs.bring`.

    Raises:
        StoreError: It does not exist, may not be opened, or cannot be brought into the store.
    """
    path = _resolve(text)
    if path.parent == store.root.resolve() and RunFolder(path).record.is_file():
        return store.folder(path.name)
    arrival = opened_logs.new_arrival(store)
    try:
        opened_logs.bring(path, arrival, copied)
        return opened_logs.adopt(store, arrival, path.name)
    finally:
        shutil.rmtree(arrival, ignore_errors=True)


def check(path: Path) -> None:
    """Refuse a path that may not be opened, links followed.

    Raises:
        StoreError: It may not.
    """
    if reason := problem():
        raise StoreError(reason)
    allowed, path = _allowed_folders(), path.resolve()
    if allowed is not None and not any(path.is_relative_to(folder) for folder in allowed):
        raise StoreError(f"{path} lies outside the folders that PIPELINE_LAB_PATHS allows.")


def check_pattern(pattern: str) -> None:
    """Refuse a pattern of files that would look into folders that may not be opened.

    Raises:
        StoreError: It would.
    """
    parts = Path(pattern).parts
    fixed = list(itertools.takewhile(lambda part: not glob.has_magic(part), parts))
    if ".." in parts[len(fixed) :]:
        raise StoreError("Write the pattern without '..' behind a wildcard.")
    check(Path(*fixed))


def _resolve(text: str) -> Path:
    """Return the real path, links followed, if it may be opened."""
    if reason := problem():
        raise StoreError(reason)
    try:
        path = Path(text.strip()).expanduser().resolve()
    except (RuntimeError, ValueError, OSError):
        raise StoreError("That is no path; write one such as /home/me/logs/plugins/profile/2026_01_02.") from None
    check(path)
    with contextlib.suppress(OSError):
        if path.exists():
            return path
    raise StoreError(f"{path} does not exist on the machine that the app runs on.")


def _allowed_folders() -> list[Path] | None:
    """Return the folders of ``PIPELINE_LAB_PATHS``, none if it is empty; None if it is not set."""
    named = os.environ.get("PIPELINE_LAB_PATHS")
    if named is None:
        return None
    return [Path(folder).expanduser().resolve() for folder in named.split(os.pathsep) if folder.strip()]


def is_local() -> bool:
    """Say whether the app answers this machine alone."""
    return st.get_option("server.address") in LOCAL_HOSTS
