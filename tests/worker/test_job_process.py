import errno
import io
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline_lab.errors import DataError
from pipeline_lab.runs.run_events import FailureEvent, find_damaged_events, read_events
from pipeline_lab.worker import job_process
from pipeline_lab.worker.job_context import Job
from pipeline_lab.worker.note.event_log import EventLog
from tests.support.presets import SYNTHETIC
from tests.worker.fakes import make_job

FAILING_END = """
from pipeline_lab.worker import job_process

def fail():
    raise ValueError

job_process.multiprocessing.active_children = fail
job_process.leave_process(3)
"""


@pytest.mark.slow
def test_the_process_ends_with_its_code_whatever_fails_before() -> None:
    root = Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, "-c", FAILING_END], cwd=root, check=False).returncode == 3


class FullDisk(io.StringIO):
    def write(self, _text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_job_whose_log_cannot_be_written_fails_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception that left the job would end the process in order, which may wait for tf.data for ever."""

    def fail(*_: object) -> None:
        raise DataError("The file a.tfrecord is damaged.")

    monkeypatch.setattr(job_process, "_run", fail)
    monkeypatch.setattr(job_process, "_redirect_output", lambda _: None)
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, FullDisk())
    folder = make_job(tmp_path, SYNTHETIC.options).folder
    assert job_process.run_job(folder.path) == 1
    events = [event for event in read_events(folder.events) if isinstance(event, FailureEvent)]
    assert [event.sentence for event in events] == ["The file a.tfrecord is damaged."]


def test_a_job_that_is_stopped_before_it_trains_has_reported_all_that_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(job: Job) -> None:
        job.stop.request()
        job.enter("data")

    monkeypatch.setitem(sys.modules, "pipeline_lab.worker.training_session", SimpleNamespace(run_session=stop))
    monkeypatch.setattr(job_process, "keep_generated_code_in", lambda _: None)
    folder, before = make_job(tmp_path, SYNTHETIC.options).folder, signal.getsignal(signal.SIGTERM)
    try:
        job_process._run(folder, EventLog(folder.events))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert folder.events.read_text()
    assert find_damaged_events(folder.events) == ""
