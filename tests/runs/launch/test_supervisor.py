import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from pipeline_lab.errors import StoreError
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.launch import launcher
from pipeline_lab.runs.launch.launcher import cancel, wait
from pipeline_lab.runs.launch.supervisor import TimeLimit, claim, find_time_limit
from pipeline_lab.runs.record import RunState, process_of
from pipeline_lab.runs.run_events import STOPPED
from pipeline_lab.runs.run_folder import RunFolder, read_record, update_record
from pipeline_lab.runs.store import RunStore
from tests.support.lab import Lab, is_gone, notes, options_for
from tests.support.patience import PATIENCE_S, until

STORE_NAMES = {".lock", "events.jsonl", "pipeline.py", "run.json", "worker.log", "worker.pid"}


def supervisor_of(folder: RunFolder) -> int:
    supervisor = read_record(folder).status.supervisor
    assert supervisor is not None
    return supervisor.pid


SUPERVISE = """
import sys
from pathlib import Path
from pipeline_lab.runs.launch.queue import MeasurementLock
from pipeline_lab.runs.launch.supervisor import claim, supervise
from pipeline_lab.runs.run_folder import RunFolder

folder = RunFolder(Path(sys.argv[1]))
claim(folder)
supervise(folder, MeasurementLock(), grace_s=float(sys.argv[2]))
"""


@contextmanager
def supervised(lab: Lab, behavior: str, grace_s: float) -> Iterator[tuple[RunFolder, int]]:
    """Supervise a worker that has so long to stop once it is asked to; yield the run and the worker's pid once it works."""
    folder = lab.store.create(options_for(behavior), "")
    with subprocess.Popen([sys.executable, "-c", SUPERVISE, str(folder.path), str(grace_s)]):
        yield folder, lab.wait_until_working(folder)


def test_a_job_that_works_is_done(lab: Lab) -> None:
    folder = lab.launch("done")

    record = wait(folder)

    assert (record.status.state, record.status.reason, record.status.exit_code) == (RunState.DONE, "", 0)
    assert record.environment == {"host": "fake"}
    assert record.status.started_s is not None
    assert record.status.ended_s is not None
    assert record.status.created_s <= record.status.started_s <= record.status.ended_s
    assert record.status.supervisor is None


def test_an_ended_run_holds_neither_reserve_nor_scratch(lab: Lab) -> None:
    folder = lab.launch("patient")
    lab.wait_until_working(folder)
    assert folder.scratch.exists()
    assert folder.reserve.exists()
    cancel(folder)
    wait(folder)
    until(lambda: {path.name for path in folder.path.iterdir()} == STORE_NAMES, "only results are left")


def test_the_workers_own_sentence_is_the_reason(lab: Lab) -> None:
    record = wait(lab.launch("fail"))

    assert record.status.state is RunState.FAILED
    assert record.status.reason == "The file /data/a.tfrecord is damaged at record 7."
    assert record.status.exit_code == 1


@pytest.mark.parametrize(
    ("behavior", "exit_code", "words"),
    [
        ("crash", 3, "exit code 3 after “ValueError: shapes (3,) and (4,) do not match”; see worker.log"),
        ("abort", -signal.SIGSEGV, "crashed (SIGSEGV); see worker.log in the run folder"),
        ("no-room", 1, "The disk that holds the run is full; free some space"),
    ],
)
def test_a_death_without_a_word_is_explained(lab: Lab, behavior: str, exit_code: int, words: str) -> None:
    record = wait(lab.launch(behavior))

    assert (record.status.state, record.status.exit_code) == (RunState.FAILED, exit_code)
    assert words in record.status.reason


def test_a_killed_worker_is_told_apart(lab: Lab) -> None:
    folder = lab.launch("patient")
    os.kill(lab.wait_until_working(folder), signal.SIGKILL)

    record = wait(folder)

    assert (record.status.state, record.status.exit_code) == (RunState.FAILED, -signal.SIGKILL)
    assert "killed" in record.status.reason
    assert "memory" in record.status.reason


def test_cancel_lets_the_worker_flush(lab: Lab) -> None:
    with supervised(lab, "patient", PATIENCE_S) as (folder, _):
        cancel(folder)
        record = wait(folder)

    assert record.status.state is RunState.CANCELLED
    assert record.status.reason == "Canceled after 7 steps; what was recorded is kept."
    assert notes(folder)[-1] == "flushed"


def test_a_worker_that_another_program_ends_leaves_a_canceled_run(lab: Lab) -> None:
    folder = lab.launch("patient")
    os.kill(lab.wait_until_working(folder), signal.SIGTERM)

    record = wait(folder)

    assert (record.status.state, record.status.exit_code) == (RunState.CANCELLED, STOPPED)
    assert record.status.reason == "Canceled after 7 steps; what was recorded is kept."


def test_cancel_after_the_end_changes_nothing(lab: Lab) -> None:
    folder = lab.launch("done")
    before = wait(folder)
    cancel(folder)
    assert read_record(folder) == before
    assert not folder.cancel_flag.exists()


def test_a_worker_that_will_not_stop_is_killed(lab: Lab) -> None:
    with supervised(lab, "stubborn", 0.3) as (folder, worker):
        cancel(folder)
        record = wait(folder)

    assert record.status.state is RunState.CANCELLED
    assert record.status.exit_code == -signal.SIGKILL
    assert "killed, so a profile window that was open is lost" in record.status.reason
    assert not psutil.pid_exists(worker)


def test_a_job_past_its_time_limit_is_ended(lab: Lab) -> None:
    folder = lab.launch("patient", timeout_s=0.5)

    record = wait(folder)

    assert record.status.state is RunState.FAILED
    assert "exceeded its time limit of 0.5 s" in record.status.reason
    assert "training.timeout_s" in record.status.reason


@pytest.mark.parametrize(
    ("training", "limit_s"),
    [({}, 3600), ({"timeout_s": 60}, 60), ({"steps": None, "seconds": 7200}, 10_800)],
)
def test_the_time_that_a_job_was_asked_to_train_is_not_limited(training: dict[str, float], limit_s: float) -> None:
    document = options_for("long", **training).model_dump(mode="json")
    assert find_time_limit(document) == TimeLimit(limit_s, "training.timeout_s")


def test_the_time_that_a_race_was_asked_to_take_is_not_limited() -> None:
    arm = options_for("endless")
    options = RaceOptions(arms=(arm, arm), max_seconds=7200, warmup_seconds=300, timeout_s=1000)
    assert find_time_limit(options.model_dump(mode="json")) == TimeLimit(7200 + 2 * 300 + 1000, "timeout_s")


def test_the_worker_dies_with_its_supervisor_and_the_run_reads_as_lost(lab: Lab) -> None:
    folder = lab.launch("stubborn")
    worker = lab.wait_until_working(folder)
    os.kill(supervisor_of(folder), signal.SIGKILL)

    record = lab.wait_for(folder, RunState.LOST)

    assert "killed, or the machine restarted" in record.status.reason
    until(lambda: is_gone(worker), "the worker died")


def test_a_supervisor_that_is_asked_to_stop_cancels_its_run(lab: Lab) -> None:
    with supervised(lab, "patient", PATIENCE_S) as (folder, _):
        os.kill(supervisor_of(folder), signal.SIGTERM)
        record = wait(folder)

    assert record.status.state is RunState.CANCELLED
    assert notes(folder)[-1] == "flushed"


def test_what_a_worker_leaves_behind_is_killed(lab: Lab) -> None:
    folder = lab.launch("leaves-a-child")

    assert wait(folder).status.state is RunState.DONE
    child = int((folder.path / "child.pid").read_text())
    until(lambda: is_gone(child), "the child died")


def test_a_deleted_folder_ends_the_job(lab: Lab) -> None:
    folder = lab.launch("patient")
    lab.wait_until_working(folder)
    folder.path.rename(folder.path.with_name(".deleted"))
    until(lambda: not lab.processes(), "supervisor and worker ended")


def test_a_run_has_one_supervisor(lab: Lab) -> None:
    folder = lab.store.create(options_for("done"), "")
    with subprocess.Popen(["/bin/sleep", "600"]) as other:
        update_record(folder, lambda record: record.supervised_by(process_of(other.pid)))
        assert not claim(folder)
        other.kill()
    assert claim(folder)


def test_a_supervisor_is_known_before_it_has_said_a_word(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "module_command", lambda *_: ["/bin/sleep", "600"])
    folder = lab.launch("patient")
    assert read_record(folder).status.state is RunState.QUEUED
    os.kill(supervisor_of(folder), signal.SIGKILL)
    until(lambda: read_record(folder).status.state is RunState.LOST, "it is seen to be gone")


def test_a_run_that_is_over_is_not_started_again(lab: Lab) -> None:
    folder = lab.launch("done")
    wait(folder)
    assert not claim(folder)


def test_a_worker_that_cannot_be_started_is_a_failed_run(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPELINE_LAB_WORKER", "/no/such/program")

    record = wait(lab.launch("done"))

    assert record.status.state is RunState.FAILED
    assert "/no/such/program" in record.status.reason


def test_a_store_that_cannot_be_written_is_one_sentence(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = RunStore(tmp_path / "file" / "store")
    with pytest.raises(StoreError, match=r"Cannot write to the run store .* --store or PIPELINE_LAB_STORE\."):
        Lab(store, lab.runtime).launch("done")


def test_the_source_of_the_run_is_the_rendered_one(lab: Lab) -> None:
    folder = lab.launch("done")
    record = wait(folder)
    assert folder.source.read_text() == render_source(options_for("done"))
    assert json.loads(options_for("done").to_json()) == record.options


@pytest.mark.slow
def test_the_supervisor_starts_without_pydantic_pyarrow_and_tensorflow() -> None:
    program = (
        "import sys, pipeline_lab.runs.launch.spare;"
        "print([name for name in ('pydantic', 'pyarrow', 'tensorflow', 'numpy') if name in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"
