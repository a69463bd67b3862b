import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from pipeline_lab.runs.launch import spare
from pipeline_lab.runs.launch.launcher import wait
from pipeline_lab.runs.launch.queue import QueueTurn
from pipeline_lab.runs.launch.spare import (
    Request,
    ensure_spare,
    fingerprint_environment,
    hand_over,
    short_address,
    socket_path,
)
from pipeline_lab.runs.record import Process, RunState
from pipeline_lab.runs.run_folder import read_record
from tests.support.lab import Lab, notes
from tests.support.patience import until


@pytest.fixture
def owner(lab: Lab) -> Iterator[Process]:
    """The app that wants a spare; it ends with the test, and the spare with it."""
    environment = {name: value for name, value in os.environ.items() if value != str(lab.runtime)}
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env=environment) as app:
        yield Process(app.pid, psutil.Process(app.pid).create_time())
        app.kill()


def spares(lab: Lab) -> list[psutil.Process]:
    """The supervisors that hold a spare worker."""
    return [process for process in lab.processes() if "pipeline_lab.runs.launch.spare" in command_of(process)]


def waiting_workers(lab: Lab) -> list[psutil.Process]:
    return [process for process in lab.processes() if command_of(process)[-1:] == ["--wait"]]


def command_of(process: psutil.Process) -> list[str]:
    """Return the command of a process; none of one that is dead, whether or not its parent has asked about it yet."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def start_spare(lab: Lab, owner: Process) -> None:
    ensure_spare(owner)
    until(lambda: socket_path().exists() and waiting_workers(lab), "the spare is there")


def test_a_launch_takes_the_spare(lab: Lab, owner: Process) -> None:
    start_spare(lab, owner)
    warm = waiting_workers(lab)[0].pid
    folder = lab.launch("done")

    assert wait(folder).status.state is RunState.DONE
    assert notes(folder) == ["warm"]
    assert int((folder.path / "worker.pid").read_text()) == warm
    until(lambda: not lab.processes(), "the spare serves one run only")


def test_without_a_spare_the_start_is_cold(lab: Lab) -> None:
    folder = lab.launch("done")
    wait(folder)
    assert notes(folder) == ["cold"]


def test_the_second_launch_starts_cold(lab: Lab, owner: Process) -> None:
    start_spare(lab, owner)
    folders = [lab.launch("done"), lab.launch("done")]
    assert [wait(folder).status.state for folder in folders] == [RunState.DONE, RunState.DONE]
    assert [notes(folder) for folder in folders] == [["warm"], ["cold"]]


def test_there_is_one_spare_however_often_it_is_asked_for(lab: Lab, owner: Process) -> None:
    start_spare(lab, owner)
    for _ in range(5):
        ensure_spare(owner)
    assert len(waiting_workers(lab)) == 1
    assert len(spares(lab)) == 1


def test_a_changed_environment_means_a_cold_start_and_sends_the_spare_away(
    lab: Lab, owner: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_spare(lab, owner)
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "1")

    folder = lab.launch("done")

    wait(folder)
    assert notes(folder) == ["cold"]
    until(lambda: not lab.processes(), "the spare left")


def test_another_working_directory_means_a_cold_start(
    lab: Lab, owner: Process, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    start_spare(lab, owner)
    monkeypatch.chdir(tmp_path)
    folder = lab.launch("done")
    wait(folder)
    assert notes(folder) == ["cold"]


def test_a_dead_spare_worker_is_noticed_as_a_cold_start_only(lab: Lab, owner: Process) -> None:
    start_spare(lab, owner)
    waiting_workers(lab)[0].send_signal(signal.SIGKILL)
    until(lambda: not waiting_workers(lab), "the worker is dead")

    folder = lab.launch("done")

    assert wait(folder).status.state is RunState.DONE
    assert notes(folder) == ["cold"]


def test_a_dead_spare_is_noticed_as_a_cold_start_only(lab: Lab, owner: Process) -> None:
    start_spare(lab, owner)
    spares(lab)[0].send_signal(signal.SIGKILL)
    folder = lab.launch("done")
    assert wait(folder).status.state is RunState.DONE
    assert notes(folder) == ["cold"]


def test_a_spare_that_was_killed_is_replaced(lab: Lab, owner: Process) -> None:
    start_spare(lab, owner)
    spares(lab)[0].send_signal(signal.SIGKILL)
    until(lambda: not lab.processes(), "worker and supervisor are gone")
    assert socket_path().exists()  # nobody was left to remove it
    ensure_spare(owner)
    until(lambda: waiting_workers(lab), "a new spare is there")


def test_the_spare_leaves_with_its_owner(lab: Lab, owner: Process) -> None:
    start_spare(lab, owner)
    os.kill(owner.pid, signal.SIGKILL)
    until(lambda: not lab.processes(), "the spare left")
    assert not socket_path().exists()


def test_no_spare_is_started_while_a_run_is_measured(lab: Lab, owner: Process) -> None:
    with closing(QueueTurn("a run")):
        ensure_spare(owner)
    assert not lab.processes()
    assert not socket_path().exists()


def test_a_run_that_somebody_owns_is_refused(lab: Lab, owner: Process) -> None:
    start_spare(lab, owner)
    folder = lab.launch("done")
    wait(folder)
    start_spare(lab, owner)
    assert not hand_over(folder.path)
    assert len(waiting_workers(lab)) == 1


def test_nonsense_on_the_socket_is_ignored(lab: Lab, owner: Process) -> None:
    start_spare(lab, owner)
    for nonsense in (b"\n", b"[]\n", b'{"fingerprint": 1}\n', b"\xff\xfe\n", b""):
        with socket.socket(socket.AF_UNIX) as channel, short_address(socket_path()) as address:
            channel.connect(address)
            channel.sendall(nonsense)
    folder = lab.launch("done")
    wait(folder)
    assert notes(folder) == ["warm"]


def test_a_deep_folder_has_a_short_socket_address(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as caller:
        with short_address(deep / "spare.sock") as address:
            listener.bind(address)
        listener.listen()
        with short_address(deep / "spare.sock") as address:
            caller.connect(address)
        assert (deep / "spare.sock").is_socket()


def test_the_fingerprint_ignores_what_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint_environment()
    monkeypatch.setenv("COLUMNS", "123")
    assert fingerprint_environment() == before
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/x")
    assert fingerprint_environment() != before


def test_requests_survive_the_wire() -> None:
    for request in (Request("f"), Request("f", run="/r"), Request("f", owner=Process(7, 1.5))):
        assert Request.decode(request.encode()) == request


def test_a_spare_waits_in_the_queue_like_everybody(lab: Lab, owner: Process) -> None:
    start_spare(lab, owner)
    until(
        lambda: spare._ask(Request(fingerprint_environment())) == "warm",
        "it no longer leaves when a measurement starts",
    )
    with closing(QueueTurn("earlier")) as earlier:
        folder = lab.launch("done")
        until(lambda: read_record(folder).status.supervisor is not None, "the spare has it")
        until(lambda: earlier.runs_before == 0, "the earlier one is first")
        assert read_record(folder).status.state is RunState.QUEUED
    assert wait(folder).status.state is RunState.DONE
    assert notes(folder) == ["warm"]


def test_a_spare_that_still_loads_leaves_when_a_measurement_starts(
    lab: Lab, owner: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_WORKER_LOADS", "forever")
    start_spare(lab, owner)
    with closing(QueueTurn("a run")):
        until(lambda: not lab.processes(), "the spare left")
