"""``python -m pipeline_lab.tuning RUN_FOLDER``: the process that conducts one search and watches over its trials."""

import contextlib
import os
import signal
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from types import FrameType

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.options.tune_options import TuneOptions, is_script_tune, read_script_tune, read_tune_options
from pipeline_lab.runs.launch.supervisor import Ending, claim
from pipeline_lab.runs.record import RunRecord, RunState
from pipeline_lab.runs.run_events import PhaseEvent, format_event
from pipeline_lab.runs.run_folder import RunFolder, end_run, read_record, update_record
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.executors.executor import SearchStoppedError
from pipeline_lab.tuning.executors.local import open_executor
from pipeline_lab.tuning.script.script_search import ScriptSearch
from pipeline_lab.tuning.search import search
from pipeline_lab.tuning.search_result import read_tuning
from pipeline_lab.tuning.trials import TrialLedger, Trials


@dataclass
class StopSigns:
    """Everything that asks a search to stop: a signal, the cancel flag, a deleted folder."""

    folder: RunFolder
    terminated: bool = False

    def listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)

    def should_stop(self) -> bool:
        return self.terminated or self.folder.cancel_flag.exists() or not self.folder.record.exists()

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.terminated = True


def main() -> None:
    folder = RunFolder(Path(sys.argv[1]))
    if not claim(folder):
        return
    folder.reserve.unlink(missing_ok=True)
    signs = StopSigns(folder)
    signs.listen()
    ending = _bring_to_its_end(folder, signs)
    _keep_source(folder)  # before the end, so that a finished search always has its source
    end_run(folder, ending.state, ending.reason, ending.exit_code)


def _bring_to_its_end(folder: RunFolder, signs: StopSigns) -> Ending:
    """Conduct the search and say how it ended; the traceback of a bug goes to the run's log."""
    try:
        _conduct(folder, signs)
    except SearchStoppedError:
        return Ending(
            RunState.CANCELLED, "It was stopped; the best that was found so far is kept, and the search can be resumed."
        )
    except PipelineLabError as error:
        return Ending(RunState.FAILED, str(error), 1)
    except Exception as error:
        traceback.print_exc()
        what = f"{type(error).__name__}: {error}"
        return Ending(RunState.FAILED, f"The search broke ({what}); {folder.log.name} of the run has more.", 1)
    return Ending(RunState.DONE, exit_code=0)


def _conduct(folder: RunFolder, signs: StopSigns) -> None:
    update_record(folder, _running)
    folder.events.write_text(format_event(PhaseEvent("searching")), encoding="utf-8")
    document, store = read_record(folder).options or {}, RunStore(folder.path.parent)
    options = read_script_tune(document) if is_script_tune(document) else read_tune_options(document)
    executor = open_executor(options.ray, store, gpus_per_trial=options.gpus_per_trial)
    try:
        if isinstance(options, TuneOptions):
            search(folder, options, store, executor, signs.should_stop)
            return
        os.chdir(options.folder)
        trials = Trials(TrialLedger(folder.trials), executor, signs.should_stop)
        ScriptSearch(folder, options, trials, store).run()
    finally:
        executor.close()


def _running(record: RunRecord) -> RunRecord:
    return replace(
        record,
        status=record.status.change(RunState.RUNNING, started_s=record.status.started_s or record.status.created_s),
    )


def _keep_source(folder: RunFolder) -> None:
    """Leave the source of the best pipeline where every run keeps its own; a run that was deleted has none."""
    with contextlib.suppress(PipelineLabError, OSError):
        folder.source.write_text(read_tuning(folder).source, encoding="utf-8")


if __name__ == "__main__":
    main()
