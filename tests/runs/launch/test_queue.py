import signal
import subprocess
import sys
from contextlib import closing
from itertools import pairwise

import pytest

from pipeline_lab.runs.launch.launcher import cancel, follow, wait
from pipeline_lab.runs.launch.queue import MeasurementLock, QueueTurn, is_measuring, runs_before
from pipeline_lab.runs.record import RunState
from tests.support.lab import Lab
from tests.support.patience import until

HOLD = """
import sys, time
from pipeline_lab.runs.launch.queue import MeasurementLock, QueueTurn
turn, lock = QueueTurn("dead"), MeasurementLock()
assert turn.has_come(lock)
print("holds", flush=True)
time.sleep(600)
"""


@pytest.mark.usefixtures("lab")
def test_tickets_are_served_in_the_order_in_which_they_were_drawn() -> None:
    with (
        closing(QueueTurn("first")) as first,
        closing(QueueTurn("second")) as second,
        closing(QueueTurn("third")) as third,
    ):
        assert [turn.runs_before for turn in (first, second, third)] == [0, 1, 2]
        assert [runs_before(run_id) for run_id in ("first", "second", "third", "other")] == [0, 1, 2, None]
        second.close()
        assert (third.runs_before, runs_before("second")) == (1, None)


@pytest.mark.usefixtures("lab")
def test_the_lock_belongs_to_one_at_a_time() -> None:
    with closing(MeasurementLock()) as one, closing(MeasurementLock()) as other, closing(QueueTurn("run")) as turn:
        assert turn.has_come(one)
        assert not turn.has_come(other)
        one.close()
        assert turn.has_come(other)


@pytest.mark.usefixtures("lab")
def test_the_lock_is_held_as_long_as_a_worker_that_inherited_it_lives() -> None:
    lock = MeasurementLock()
    assert lock.acquire()
    program = [sys.executable, "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(program, pass_fds=(lock.fileno(),)) as worker:
        lock._file.close()  # what the kernel does when a supervisor is killed
        with closing(MeasurementLock()) as next_lock:
            assert not next_lock.acquire()
            worker.kill()
            worker.wait()
            until(next_lock.acquire, "the lock is free")


@pytest.mark.usefixtures("lab")
def test_a_dead_owners_ticket_is_skipped() -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "holds\n"
        with closing(QueueTurn("next")) as turn, closing(MeasurementLock()) as lock:
            assert turn.runs_before == 1
            assert not turn.has_come(lock)
            owner.send_signal(signal.SIGKILL)
            owner.wait()
            until(lambda: turn.has_come(lock), "the turn has come")


@pytest.mark.usefixtures("lab")
def test_nobody_measures_on_an_idle_machine() -> None:
    assert not is_measuring()
    with closing(QueueTurn("run")):
        assert is_measuring()
    assert not is_measuring()


def test_runs_are_measured_one_after_the_other_in_order(lab: Lab) -> None:
    first = lab.launch("patient")
    lab.wait_until_working(first)
    second = lab.launch("done")
    until(lambda: runs_before(second.id) == 1, "the second waits")
    third = lab.launch("done")
    until(lambda: runs_before(third.id) == 2, "the third waits behind it")
    assert next(follow(third)).runs_before == 2
    assert lab.store.read(second.id).status.state is RunState.QUEUED
    cancel(first)

    ends = [wait(folder).status for folder in (first, second, third)]

    assert [end.state for end in ends] == [RunState.CANCELLED, RunState.DONE, RunState.DONE]
    for earlier, later in pairwise(ends):
        assert earlier.ended_s is not None
        assert later.started_s is not None
        assert earlier.ended_s <= later.started_s


def test_a_queued_run_can_be_cancelled(lab: Lab) -> None:
    running = lab.launch("patient")
    lab.wait_until_working(running)
    queued = lab.launch("done")
    until(lambda: runs_before(queued.id) == 1, "it waits")
    cancel(queued)

    status = wait(queued).status

    assert (status.state, status.reason) == (RunState.CANCELLED, "Canceled before it started.")
    assert status.started_s is None
    assert not queued.events.exists()
    assert lab.store.read(running.id).status.state is RunState.RUNNING
    cancel(running)
    wait(running)
