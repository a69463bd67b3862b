"""Run one job from its folder and leave a readable run, however it ends."""

import contextlib
import multiprocessing
import os
import shutil
import sys
import traceback
from pathlib import Path

from pipeline_lab.options.race_options import read_race_options
from pipeline_lab.options.run_options import read_options
from pipeline_lab.runs.events import PhaseEvent
from pipeline_lab.runs.record import RunKind
from pipeline_lab.runs.store import RunFolder, read_record
from pipeline_lab.worker.clock import Clock
from pipeline_lab.worker.event_log import EventLog
from pipeline_lab.worker.failures import report_failure
from pipeline_lab.worker.job import Job
from pipeline_lab.worker.stopping import StopRequest, StopRequestedError


def run_job(path: Path) -> int:
    """Do what the run in that folder asks for.

    Returns:
        The process's exit code: 0 for a job that ended or was asked to end, 1 for one that failed.
    """
    folder = RunFolder(path)
    _redirect_output(folder)
    log = EventLog(folder.events)
    try:
        log.write(PhaseEvent("importing"))
        _run(folder, log)
    except Exception as error:
        traceback.print_exc()
        report_failure(folder, log, error)
        return 1
    finally:
        shutil.rmtree(folder.scratch, ignore_errors=True)
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def leave(exit_code: int) -> None:
    """End the process at once.

    All files are closed by now. An orderly exit would wait for tf.data's threads, which may be in the middle of a
    long read, and tear the interpreter down under those that are in a Python function. Processes that the pipeline
    started are ended first.
    """
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(exit_code)


def _run(folder: RunFolder, log: EventLog) -> None:
    record = read_record(folder)
    document = record.options or {}
    stop = StopRequest()
    stop.listen()
    with contextlib.suppress(StopRequestedError):
        if record.kind is RunKind.RACE:
            race = read_race_options(document)
            from pipeline_lab.worker.race_session import run_race  # takes seconds unless a spare has done it

            run_race(folder, race, log, stop)
        else:
            options = read_options(document)
            from pipeline_lab.worker.session import run_session

            run_session(Job(folder, options, log, stop, Clock()))


def _redirect_output(folder: RunFolder) -> None:
    """Send what TensorFlow and Python print to the run's log."""
    with folder.log.open("ab") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
