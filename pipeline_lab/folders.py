"""Folders of the user: the files below one that was named, and the private ones that all processes of a user share."""

import os
from collections.abc import Iterator
from pathlib import Path

import platformdirs

from pipeline_lab.errors import PipelineLabError, StoreError

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


def cache_folder() -> Path:
    """Return where lies what can be made again: ``PIPELINE_LAB_CACHE``, or the user's cache folder."""
    named = os.environ.get("PIPELINE_LAB_CACHE")
    return Path(named) if named else platformdirs.user_cache_path("pipeline-lab")


def runtime_folder() -> Path:
    """Return the user's private folder for locks and sockets; create it if needed.

    It does not follow ``XDG_RUNTIME_DIR`` or ``TMPDIR``: those differ between a desktop, a cron job and a service, and
    two queues would let two measurements share the machine.

    Raises:
        StoreError: It cannot be created, or another user created it.
    """
    user = os.getuid()
    named = os.environ.get("PIPELINE_LAB_RUNTIME")
    folder = Path(named) if named else Path("/tmp") / f"pipeline-lab-{user}"  # noqa: S108 (ownership is checked)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise StoreError(
            f"Cannot create {folder} for locks ({error.strerror}); name another folder in PIPELINE_LAB_RUNTIME."
        ) from None
    if found.st_uid != user or found.st_mode & 0o077 or not folder.is_dir() or folder.is_symlink():
        raise StoreError(
            f"{folder} must be a folder that only you can open, because runs are handed over in it; "
            "delete it, or name another one in PIPELINE_LAB_RUNTIME."
        )
    return folder
