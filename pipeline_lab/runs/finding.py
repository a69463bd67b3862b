"""Find what the user names: a file, a folder, or a run by its id."""

import contextlib
from os import PathLike
from pathlib import Path

from pipeline_lab.errors import StoreError, TraceReadError
from pipeline_lab.options.explaining import did_you_mean
from pipeline_lab.runs.store import RunStore, find_store, open_store

LONGEST_NAME = 200
"""Of a longer word nobody takes a part for a run's id."""


def name_of(path: Path) -> str:
    """Return the shortest text by which :func:`find_path` finds a run: its id where the usual store has it, else its path."""
    with contextlib.suppress(StoreError):
        if open_store().folder(path.name).path == path:
            return path.name
    return str(path)


def find_path(what: str | PathLike[str], store: RunStore | Path | None = None) -> Path:
    """Return the absolute path of a file, a folder, or the run of that id.

    Raises:
        TraceReadError: There is none of them.
    """
    with contextlib.suppress(OSError, ValueError):  # too long for a name, or below a folder that is closed to us
        if Path(what).exists():
            return Path(what).absolute()
    opened = store if isinstance(store, RunStore) else find_store(store)
    try:
        return opened.folder(str(what)).path
    except StoreError:
        name = str(what)
        offer = did_you_mean(name, (run.id for run in opened.runs())) if len(name) < LONGEST_NAME else ""
        raise TraceReadError(
            f"There is no file or folder {name[:LONGEST_NAME]!r}, and no run of that id in {opened.root}; "
            f"the page Runs and `pipeline-lab runs list` show the runs.{offer}"
        ) from None
