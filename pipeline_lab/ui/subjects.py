"""What a page shows and a download holds: the report of a run, of a race, of a search, or of runs side by side.

The app parses no trace: a run whose diagnosis is not on disk yet is named, and its page waits for it.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pipeline_lab.errors import OptionsError, TraceIncompleteError
from pipeline_lab.runs.record import RunKind
from pipeline_lab.runs.store import RunFolder, RunStore, read_record
from pipeline_lab.ui.cache import Fingerprint, fingerprint

if TYPE_CHECKING:
    from pipeline_lab.comparison.race_result import Race
    from pipeline_lab.comparison.recorded_runs import RecordedRun
    from pipeline_lab.report.report_on import Report
    from pipeline_lab.tuning.search_result import Tuning

Key: TypeAlias = tuple[Path, bool, Fingerprint, str]
"""A run's folder, whether it is a sample, and what changes when its record or its measurements do."""

MAX_RUNS = 20


def folders_of(store: RunStore, run_ids: str) -> list[RunFolder]:
    """Return the folders of ``a,b,c``, the baseline first; a run that is named twice counts once.

    Raises:
        OptionsError: No run is named, or too many are.
        StoreError: There is no such run.
    """
    ids = list(dict.fromkeys(part for part in run_ids.split(",") if part))
    if not 0 < len(ids) <= MAX_RUNS:
        raise OptionsError(f"Name 1 to {MAX_RUNS} runs, with commas between; got {len(ids)}.")
    return [store.folder(run_id) for run_id in ids]


def find_unanalysed(store: RunStore, folders: Sequence[RunFolder]) -> RunFolder | None:
    """Return the first run whose diagnosis is missing or stale, or None if all are there."""
    from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis

    for folder in folders:
        if read_record(folder).kind.holds_several:
            continue
        place = SavedDiagnosis(folder.path)
        is_there = place.load_latest() is not None if store.is_sample(folder.id) else place.is_fresh
        if not is_there:
            return folder
    return None


def open_report(store: RunStore, folders: Sequence[RunFolder]) -> "Report":
    """Return the report of one run or race, or of a baseline and its candidates; it is kept until an input changes.

    Raises:
        TraceIncompleteError: A run still works, is not analysed yet, or a race has no complete round.
        ComparisonError: A race is among several.
    """
    return _report(tuple(_key(store, folder) for folder in folders))


@lru_cache(maxsize=4)
def _report(keys: tuple[Key, ...]) -> "Report":
    from pipeline_lab.report.report_on import report_on

    return report_on([_open(RunFolder(path), is_sample=is_sample) for path, is_sample, *_ in keys])


def _key(store: RunStore, folder: RunFolder) -> Key:
    from pipeline_lab.analysis.diagnosis.saved import fingerprint as fingerprint_inputs

    blocks = fingerprint(folder.blocks)
    steps = fingerprint(folder.history)
    measured = f"{blocks}{steps}" if any(blocks + steps) else fingerprint_inputs(folder.path)
    return (folder.path, store.is_sample(folder.id), fingerprint(folder.record), measured)


def _open(folder: RunFolder, *, is_sample: bool) -> "RecordedRun | Race | Tuning":
    from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis
    from pipeline_lab.comparison.race_result import read_race
    from pipeline_lab.comparison.recorded_runs import describe_run
    from pipeline_lab.tuning.search_result import read_tuning

    record = read_record(folder)
    if record.status.state.is_live:
        raise TraceIncompleteError(f"{record.name} still works; compare and export it when it is over.")
    if record.kind is RunKind.RACE:
        return read_race(folder)
    if record.kind is RunKind.TUNE:
        return read_tuning(folder)
    place = SavedDiagnosis(folder.path)
    diagnosis = place.load_latest() if is_sample else place.load()
    if diagnosis is None:
        raise TraceIncompleteError(f"{record.name} is not analysed yet; open its page, which sees to that.")
    # A sample was diagnosed where it was recorded; here it lies somewhere else.
    here = replace(diagnosis.source, path=str(folder.path))
    return describe_run(folder, replace(diagnosis, source=here))
