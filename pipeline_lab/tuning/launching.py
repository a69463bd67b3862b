"""Start and resume searches; each is a run of the store, conducted by a process of its own."""

import time
from dataclasses import replace

from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.options.race_options import read_race_options
from pipeline_lab.options.tune_options import TuneOptions
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.launch.launchable import check_launchable
from pipeline_lab.runs.launch.runtime import module_command, runtime_folder, start_process
from pipeline_lab.runs.record import RunKind, RunRecord, RunState
from pipeline_lab.runs.store import RunFolder, RunStore, read_record
from pipeline_lab.tuning.space import make_space
from pipeline_lab.tuning.trials import Ledger

CLAIM_S = 20.0
"""Time for the process of a resumed search to put itself down as its supervisor."""


def launch_tune(store: RunStore, options: TuneOptions) -> RunFolder:
    """Start a search and return at once; it goes on when the caller ends.

    Raises:
        OptionsError: There is nothing to search around this start, or it is bound to fail.
        StoreError: The store cannot be written, or no process can be started.
    """
    check_tune(options)
    check_launchable(options.start)
    runtime_folder()  # its trouble is the caller's to see, before there is a run
    return _start(store.create(options, render_source(options.start)))


def check_tune(options: TuneOptions) -> None:
    """Make sure that there is something to search, and that it can race.

    Raises:
        OptionsError: There is not; the text says why.
    """
    make_space(options.start, may_reorder=options.may_reorder, only=options.only)
    start = options.start.model_dump(mode="json")
    read_race_options({"arms": [start, start]})


def resume_tune(store: RunStore, run_id: str) -> RunFolder:
    """Let a search that was killed, cancelled or has failed go on; what it measured is not measured again.

    The trial whose failure ended it is, and so is each that was cancelled or lost.

    Raises:
        OptionsError: The run is no search, or is over.
        StoreError: There is no such run, it still goes, or the store is locked.
    """
    store.check_unlocked()
    record = store.read(run_id)
    if record.kind is not RunKind.TUNE:
        raise OptionsError(f"Run {run_id} is a {record.kind.value}, not a search; only searches are resumed.")
    if record.status.state.is_live:
        raise StoreError(f"The search {run_id} still goes; follow it in the app, or cancel it first.")
    if record.status.state is RunState.DONE:
        raise OptionsError(f"The search {run_id} came to its end; start a new one from its winner.")
    folder = store.folder(run_id)
    folder.cancel_flag.unlink(missing_ok=True)
    folder.history.unlink(missing_ok=True)  # how it ended before is not how it will end
    ledger = Ledger(folder.trials)
    ledger.forget(_unanswered(ledger, store))
    store.update(run_id, _waiting)
    _start(folder)
    deadline_s = time.monotonic() + CLAIM_S
    while read_record(folder).status.state is RunState.LOST and time.monotonic() < deadline_s:
        time.sleep(0.1)
    return folder


def _unanswered(ledger: Ledger, store: RunStore) -> set[str]:
    """Return the keys of failed trials that say nothing of what they measured, and of the one that failed last."""
    lines = list(ledger.read().values())
    return {line.key for line in lines if line.failure and (line is lines[-1] or _was_stopped(store, line.run))}


def _was_stopped(store: RunStore, run_id: str) -> bool:
    try:
        return bool(run_id) and store.read(run_id).status.state in (RunState.CANCELLED, RunState.LOST)
    except StoreError:  # somebody deleted it
        return True


def _waiting(record: RunRecord) -> RunRecord:
    status = record.status.change(RunState.QUEUED, reason="", ended_s=None, exit_code=None, supervisor=None)
    return replace(record, status=status)


def _start(folder: RunFolder) -> RunFolder:
    start_process(folder, module_command("pipeline_lab.tuning", str(folder.path)))
    return folder
