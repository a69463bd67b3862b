"""Open what the user names, searches included."""

from pathlib import Path

from pipeline_lab.comparison.opening import Recorded, open_any
from pipeline_lab.comparison.race_result import Race
from pipeline_lab.comparison.recorded_runs import RecordedRun
from pipeline_lab.runs.record import RunKind
from pipeline_lab.runs.store import RunFolder, find_path, read_record
from pipeline_lab.tuning.result import Tuning, read_tuning


def open_with_searches(what: Recorded | Race | Tuning, store: Path | None = None) -> RecordedRun | Race | Tuning:
    """Open a run, a race, a search or a log.

    Raises:
        TraceReadError: There is no such run, folder or file, or nothing in it can be read.
    """
    if isinstance(what, Tuning):
        return what
    if isinstance(what, str | Path):
        folder = RunFolder(find_path(what, store))
        if folder.record.is_file() and read_record(folder).kind is RunKind.TUNE:
            return read_tuning(folder)
    return open_any(what, store)
