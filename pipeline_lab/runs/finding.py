"""Find what the user names: a file, a folder, or a run by its id."""

import contextlib
from pathlib import Path

from pipeline_lab.errors import StoreError, TraceReadError
from pipeline_lab.runs.store import find_store, open_store


def name_of(path: Path) -> str:
    """Return the shortest text by which :func:`find_path` finds a run: its id where the usual store has it, else its path."""
    with contextlib.suppress(StoreError):
        if open_store().folder(path.name).path == path:
            return path.name
    return str(path)


def find_path(what: str | Path, store: Path | None = None) -> Path:
    """Return the absolute path of a file, a folder, or the run of that id.

    Raises:
        TraceReadError: There is none of them.
    """
    with contextlib.suppress(OSError, ValueError):  # too long for a name, or below a folder that is closed to us
        if Path(what).exists():
            return Path(what).absolute()
    opened = find_store(store)
    try:
        return opened.folder(str(what)).path
    except StoreError:
        raise TraceReadError(
            f"There is no file or folder {str(what)[:200]!r}, and no run of that id in {opened.root}; "
            "`pipeline-lab runs list` shows the runs."
        ) from None
