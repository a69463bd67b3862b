"""All entries of a store at once: what lists say of each run, and which entries cannot be read.

A run is read again only when the file of its record is another one. What was read of many runs is kept in the user's cache,
because the records of thousands take seconds. Importing it does not load pydantic.
"""

import contextlib
import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import StoreError
from pipeline_lab.folders import cache_folder
from pipeline_lab.runs.record import ListedRun, RunState
from pipeline_lab.runs.run_folder import RECORD, FileVersion, find_loss, parse_record, version_of_record, write_whole

VERSION = 1
"""Raised when something else is kept of a run, or records are read in another way."""
WORTH_KEEPING = 100
"""Records that had to be read, from which on what was read is kept."""


@dataclass(frozen=True)
class UnreadableRun:
    """An entry of a store that cannot be read.

    Attributes:
        id: Its folder's name.
        reason: Why, as a sentence.
    """

    id: str
    reason: str


Known = dict[str, tuple[FileVersion, ListedRun]]
"""Runs by the names of their folders, as the records' files said last."""
_known: dict[Path, Known] = {}
"""Those of each store that this process has listed."""


def list_runs(root: Path | None) -> tuple[list[ListedRun], list[UnreadableRun]]:
    """Return the readable runs of a store and the entries that cannot be read, both by name."""
    runs: list[ListedRun] = []
    unreadable: list[UnreadableRun] = []
    if root is None or not root.is_dir():
        return runs, unreadable
    before, now = _known[root] if root in _known else _read_kept(root), Known()
    with os.scandir(root) as entries:
        names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
    for name in names:
        folder = f"{root}/{name}"  # of thousands, paths would take most of the time
        try:
            version = version_of_record(folder)
            known = before.get(name)
            now[name] = known if known and known[0] == version else (version, parse_record(folder, version).listed)
        except StoreError as error:
            if reason := _why_unreadable(root / name, error):
                unreadable.append(UnreadableRun(name, reason))
        else:
            runs.append(_as_it_is(folder, now[name][1]))
    _known[root] = now
    if sum(before.get(name) is not entry for name, entry in now.items()) >= WORTH_KEEPING:
        with contextlib.suppress(OSError):  # the next process reads the records
            _keep(root, now)
    return runs, unreadable


def _as_it_is(folder: str, run: ListedRun) -> ListedRun:
    """Return a run as lost if its supervisor is gone."""
    reason = find_loss(folder, run.status)
    return replace(run, status=run.status.change(RunState.LOST, reason=reason)) if reason else run


def _why_unreadable(entry: Path, error: StoreError) -> str:
    """Return why an entry of a store cannot be read, empty if it is not a run."""
    try:
        return str(error) if (entry / RECORD).is_file() else ""
    except OSError as refused:
        return f"{refused.strerror}."


def _kept_in(root: Path) -> Path:
    return cache_folder() / "listings" / f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:32]}.json"


def _keep(root: Path, known: Known) -> None:
    file = _kept_in(root)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, json.dumps({"version": VERSION, "runs": known}, default=vars))


def _read_kept(root: Path) -> Known:
    """Return what was kept of a store; nothing if it is damaged."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        document = json.loads(_kept_in(root).read_text(encoding="utf-8"))
        if document["version"] == VERSION:
            return {
                name: ((inode, size, changed_ns), ListedRun.from_document(run))
                for name, ((inode, size, changed_ns), run) in document["runs"].items()
            }
    return {}
