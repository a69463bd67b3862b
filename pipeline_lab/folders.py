"""The files below a folder that the user named: plain files only, and no more than any log has."""

import os
from collections.abc import Iterator
from pathlib import Path

from pipeline_lab.errors import PipelineLabError

MAX_ENTRIES = 200_000
"""Files and folders to look at; a log directory holds far fewer."""


def files_below(root: Path, error: type[PipelineLabError]) -> Iterator[Path]:
    """Yield the files below a folder in the order of their names; linked folders and hidden entries are left out.

    Args:
        root: The folder.
        error: What is raised where it holds more than :data:`MAX_ENTRIES`.
    """
    seen = 0
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        seen += len(names) + len(inner)
        if seen > MAX_ENTRIES:
            raise error(f"{root} holds more than {MAX_ENTRIES:,} files; name the log directory itself.")
        paths = (Path(folder, name) for name in sorted(names) if not name.startswith("."))
        yield from (path for path in paths if path.is_file())


def as_text(name: str) -> str:
    """Return the name of a file or folder as text; invalid UTF-8 is replaced."""
    return name.encode("utf-8", "replace").decode()
