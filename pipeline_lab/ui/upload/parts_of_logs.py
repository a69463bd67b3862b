"""Logs whose parts come from different hosts or frameworks: their page opens once the user said whether they are one job."""

from functools import lru_cache
from pathlib import Path

from pipeline_lab.errors import StoreError
from pipeline_lab.folders import files_below
from pipeline_lab.runs import opened_logs
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.trace import log_parts
from pipeline_lab.trace.log_parts import LogPart

_MOST_KNOWN = 256


def parts_in_question(folder: RunFolder) -> tuple[LogPart, ...]:
    """Return the parts of an opened log that may be several jobs; none where the user said that it is one, or kept it."""
    if not folder.opened.is_dir() or folder.one_job.exists() or not opened_logs.is_unkept(folder):
        return ()
    return _parts(folder.opened, tuple(sorted(files_below(folder.opened, StoreError))))


@lru_cache(_MOST_KNOWN)
def _parts(log: Path, _files: tuple[Path, ...]) -> tuple[LogPart, ...]:
    """Return the parts that disagree; a log that arrived changes only by being split."""
    parts = log_parts.find_parts(log)
    return parts if log_parts.disagree(parts) else ()
