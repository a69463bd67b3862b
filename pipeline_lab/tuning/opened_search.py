"""Opens any search: one around options, or one for better input of a script."""

from pathlib import Path
from typing import TypeAlias

from pipeline_lab.comparison.opening import Recorded, open_any
from pipeline_lab.comparison.race_result import Race
from pipeline_lab.comparison.recorded_runs import RecordedRun
from pipeline_lab.errors import StoreError
from pipeline_lab.options.tune_options import is_script_tune
from pipeline_lab.runs.record import RunKind
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.store import find_path
from pipeline_lab.tuning.script.script_result import ScriptTuning, read_script_tuning
from pipeline_lab.tuning.search_result import RecordedSearch, Tuning, read_tuning

AnyTuning: TypeAlias = Tuning | ScriptTuning


def read_search(folder: RunFolder) -> AnyTuning:
    """Read a search from its folder, finished or not.

    Raises:
        StoreError: The run is not a search.
        OptionsError: Its options are damaged.
    """
    record = read_record(folder)
    if record.kind is not RunKind.TUNE:
        raise StoreError(f"Run {folder.id} is not a search; `pipeline-lab tune` makes one.")
    return read_script_tuning(folder) if is_script_tune(record.options or {}) else read_tuning(folder)


def open_with_searches(what: Recorded | Race | AnyTuning, store: Path | None = None) -> RecordedRun | Race | AnyTuning:
    """Open a run, a race, a search or a log.

    Raises:
        TraceReadError: There is no such run, folder or file, or nothing in it can be read.
    """
    if isinstance(what, RecordedSearch):
        return what
    if isinstance(what, str | Path):
        folder = RunFolder(find_path(what, store))
        if folder.record.is_file() and read_record(folder).kind is RunKind.TUNE:
            return read_search(folder)
    return open_any(what, store)
