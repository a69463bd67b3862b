"""Open what the user names: a run's id, a run folder, any log, or a diagnosis that was made before."""

from pathlib import Path
from typing import TypeAlias

from pipeline_lab.analysis.diagnosis.saved import diagnose_saved
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.comparison.race_result import Race, read_race
from pipeline_lab.comparison.recorded_runs import Comparison, RecordedRun, compare_runs, describe_run
from pipeline_lab.errors import ComparisonError
from pipeline_lab.runs.record import RunKind
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.store import check_is_one, find_path, refuse_race

Recorded: TypeAlias = str | Path | Diagnosis | RecordedRun


def compare_recorded(baseline: Recorded, *candidates: Recorded, store: Path | None = None) -> Comparison:
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
        ComparisonError: It is a race or a search.
    """
    if isinstance(what, str | Path):
        what = find_path(what, store)
        check_is_one(what)
    opened = open_any(what, store)
    if isinstance(opened, Race):
        raise ComparisonError(refuse_race(opened.id))
    return opened


def open_any(what: Recorded | Race, store: Path | None = None) -> RecordedRun | Race:
    """Open a run, a race or a log.

    Raises:
        TraceReadError: There is no such run, folder or file, or nothing in it can be read.
    """
    if isinstance(what, RecordedRun | Race):
        return what
    if isinstance(what, Diagnosis):
        return _describe(what)
    path = find_path(what, store)
    if is_race_folder(path):
        return read_race(RunFolder(path))
    return _describe(diagnose_saved(path))


def is_race_folder(path: Path) -> bool:
    """Say whether a path is the folder of a race."""
    folder = RunFolder(path)
    return folder.record.is_file() and read_record(folder).kind is RunKind.RACE


def _describe(diagnosis: Diagnosis) -> RecordedRun:
    path = Path(diagnosis.source.path)
    if (folder := RunFolder(path)).record.is_file():
        return describe_run(folder, diagnosis)
    return RecordedRun(name=path.name or str(path), diagnosis=diagnosis)
