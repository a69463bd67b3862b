"""Races of real jobs in quick succession: TensorFlow is imported once, and every race runs in a fork of that process.

A fork has what the import left and nothing else: no device context, no thread, no iterator of an earlier race. The
queue and the supervisor of a launched race are left out; what runs in the fork is the worker's own code.
"""

import os
import time
from dataclasses import replace

from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.runs.launch.launcher import create_run
from pipeline_lab.runs.record import RunRecord, RunState, this_process
from pipeline_lab.runs.run_folder import RunFolder, update_record
from pipeline_lab.runs.store import RunStore


def run_forked(store: RunStore, options: RaceOptions) -> RunFolder:
    """Run one race to its end.

    Raises:
        RuntimeError: The race failed; the worker's log in its folder says why.
    """
    from pipeline_lab.worker.job_process import leave_process, run_job
    from pipeline_lab.worker.race import race_session  # noqa: F401, the forks find it imported

    folder = create_run(store, options)
    _change(folder, RunState.STARTING)
    process = os.fork()
    if process == 0:
        leave_process(run_job(folder.path))
    _, status = os.waitpid(process, 0)
    if status:
        _change(folder, RunState.FAILED)
        raise RuntimeError(f"Race {folder.path} failed; see {folder.log}.")
    _change(folder, RunState.DONE)
    return folder


def _change(folder: RunFolder, state: RunState) -> None:
    def change(record: RunRecord) -> RunRecord:
        supervisor = this_process() if state.is_live else None
        return replace(record, status=record.status.change(state, supervisor=supervisor, ended_s=time.time()))

    update_record(folder, change)
