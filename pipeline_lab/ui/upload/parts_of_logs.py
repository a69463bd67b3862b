"""Logs whose parts come from different hosts or frameworks: nothing is said of them before the user said whether they are one job."""

from functools import lru_cache

from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.trace import log_parts
from pipeline_lab.trace.log_parts import LogPart

_MOST_KNOWN = 256


def parts_in_question(folder: RunFolder) -> tuple[LogPart, ...]:
    """Return the parts of an opened log that may be several jobs; none where it is one, or the user said so."""
    if not folder.opened.is_dir() or folder.one_job.exists():
        return ()
    return _parts(folder)


@lru_cache(_MOST_KNOWN)
def _parts(folder: RunFolder) -> tuple[LogPart, ...]:
    """Return the parts that disagree; a log that arrived does not change."""
    parts = log_parts.find_parts(folder.opened)
    return parts if log_parts.disagree(parts) else ()
