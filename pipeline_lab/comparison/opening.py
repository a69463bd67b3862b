"""Open what the user names: a run's id, a run folder, any log, or a diagnosis that was made before."""

from pathlib import Path
from typing import TypeAlias

from pipeline_lab.analysis.diagnosis import diagnose
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.comparison.recorded import Comparison, compare_runs
from pipeline_lab.comparison.recorded_run import RecordedRun, describe_run
from pipeline_lab.errors import StoreError, TraceReadError
from pipeline_lab.runs.store import RunFolder, open_store

Recorded: TypeAlias = str | Path | Diagnosis | RecordedRun


def compare(baseline: Recorded, *candidates: Recorded, store: Path | None = None) -> Comparison:
    """Compare recorded runs or logs with a baseline.

    Args:
        baseline: A run's id, a run folder, a log directory, a trace file, or a diagnosis.
        candidates: One to nineteen more of them.
        store: Where ids are looked up; the usual store if None.

    Raises:
        ComparisonError: There is no candidate, or there are too many.
        TraceReadError: One of them cannot be found or read.
    """
    opened = [open_recorded(each, store) for each in (baseline, *candidates)]
    return compare_runs(opened[0], *opened[1:])


def open_recorded(what: Recorded, store: Path | None = None) -> RecordedRun:
    """Open one run or log with all that is known about it.

    Raises:
        TraceReadError: There is no such run, folder or file, or nothing in it can be read.
    """
    if isinstance(what, RecordedRun):
        return what
    diagnosis = what if isinstance(what, Diagnosis) else diagnose(find_path(what, store))
    path = Path(diagnosis.source.path)
    if (folder := RunFolder(path)).record.is_file():
        return describe_run(folder, diagnosis)
    return RecordedRun(name=path.name or str(path), diagnosis=diagnosis)


def find_path(what: str | Path, store: Path | None = None) -> Path:
    """Return the absolute path of a file, a folder, or the run of that id.

    Raises:
        TraceReadError: There is none of them.
    """
    if Path(what).exists():
        return Path(what).absolute()
    opened = open_store(store)
    try:
        return opened.folder(str(what)).path
    except StoreError:
        raise TraceReadError(
            f"There is no file or folder {str(what)[:200]!r}, and no run of that id in {opened.root}; "
            "`pipeline-lab runs list` shows the runs."
        ) from None
