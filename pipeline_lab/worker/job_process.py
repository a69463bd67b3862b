"""Run one job from its folder, and leave a readable run however it ends; or load TensorFlow before the job is known."""

import importlib
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
import traceback
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from pipeline_lab.collecting import loading
from pipeline_lab.options.race_options import read_race_options
from pipeline_lab.options.run_options import read_options
from pipeline_lab.runs.record import RunKind
from pipeline_lab.runs.run_events import LAST_PHASE, STOPPED, PhaseEvent
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.worker.job_context import Job, StopRequest, StopRequestedError
from pipeline_lab.worker.note.event_log import Clock, EventLog
from pipeline_lab.worker.note.failures import report_failure
from pipeline_lab.worker.record.own_process import lower_own_priority


def run_job(path: Path) -> int:
    """Run the job of a run folder.

    Returns:
        The exit code: 0 for a job that ended, ``STOPPED`` for one that was asked to stop, 1 for one that failed.
    """
    folder = RunFolder(path)
    _redirect_output(folder)
    log = EventLog(folder.events)
    try:
        log.write(PhaseEvent("importing"))
        was_stopped = _run(folder, log)
    except Exception as error:
        with suppress(OSError):  # as where the disk of the log is full
            traceback.print_exc()
        report_failure(folder, log, error)
        return 1
    finally:
        shutil.rmtree(folder.scratch, ignore_errors=True)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
    return STOPPED if was_stopped else 0


def leave_process(exit_code: int) -> None:
    """End the process and its children at once.

    All files of the run are closed by now. An orderly exit would wait for tf.data's threads, which may be in a long read, and would
    tear down the interpreter under those that run Python.
    """
    try:
        for child in multiprocessing.active_children():
            child.kill()
    finally:
        os._exit(exit_code)


def keep_generated_code_in(folder: Path) -> None:
    """Let AutoGraph, which is loaded, write its functions into a folder that goes with the run, however that ends.

    It would write them into the folder of all temporary files, where those of a killed process stay.
    """
    from tensorflow.python.autograph.pyct import loader

    folder.mkdir(parents=True, exist_ok=True)
    loader.tempfile = SimpleNamespace(NamedTemporaryFile=partial(tempfile.NamedTemporaryFile, dir=folder))


def _run(folder: RunFolder, log: EventLog) -> bool:
    """Run the job; say whether it was asked to stop."""
    record = read_record(folder)
    document = record.options or {}
    stop = StopRequest()
    stop.listen()
    try:
        if record.kind is RunKind.RACE:
            race = read_race_options(document)
            with loading():
                from pipeline_lab.worker.race.race_session import run_race

            keep_generated_code_in(folder.scratch)
            run_race(folder, race, log, stop)
        else:
            options = read_options(document)
            with loading():
                from pipeline_lab.worker.training_session import run_session

            keep_generated_code_in(folder.scratch)
            run_session(Job(folder, options, log, stop, Clock()))
    except StopRequestedError:
        log.write(PhaseEvent(LAST_PHASE))  # all that it reported is there
    return stop.is_set


def _redirect_output(folder: RunFolder) -> None:
    """Send the output of TensorFlow and Python to the run's log."""
    with folder.log.open("ab") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())


READY = "ready"


def load_quietly() -> bool:
    """Import everything that a job needs on a thread of low priority; return whether that worked.

    The main thread, which runs the job later, keeps its priority. No device is touched, so that a waiting worker holds no
    GPU memory.
    """
    errors: list[BaseException] = []

    def load() -> None:
        try:
            lower_own_priority()
            with loading():
                importlib.import_module("pipeline_lab.worker.training_session")
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=load, name="import")
    thread.start()
    thread.join()
    for error in errors:
        traceback.print_exception(error)
    return not errors
