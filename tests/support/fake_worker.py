"""Stands in for ``python -m pipeline_lab.worker``: no TensorFlow, and the run's name says how it behaves."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pipeline_lab.runs.record import RunRecord, RunState
from pipeline_lab.runs.run_events import (
    LAST_PHASE,
    STOPPED,
    Event,
    FailureEvent,
    NoteEvent,
    PhaseEvent,
    ProgressEvent,
    RaceEvent,
    format_event,
)
from pipeline_lab.runs.run_folder import RunFolder, read_record, update_record


def main() -> None:
    if sys.argv[1] == "--wait":
        if "FAKE_WORKER_LOADS" in os.environ:
            sleep_on()
        print("ready", flush=True)
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        folder, warm = RunFolder(Path(line.rstrip("\n"))), True
    else:
        folder, warm = RunFolder(Path(sys.argv[1])), False
    behavior = read_record(folder).name
    say(folder, NoteEvent("warm" if warm else "cold"))
    say(folder, PhaseEvent("training"))
    update_record(folder, running)
    (folder.path / "worker.pid").write_text(str(os.getpid()))
    BEHAVIORS[behavior](folder)


def say(folder: RunFolder, event: Event) -> None:
    with folder.events.open("a") as events:
        events.write(format_event(event))


def running(record: RunRecord) -> RunRecord:
    return replace(record, status=record.status.change(RunState.RUNNING), environment={"host": "fake"})


def done(folder: RunFolder) -> None:
    say(folder, ProgressEvent(steps=30, total_steps=30, elapsed_s=3.0, total_s=None))
    say(folder, PhaseEvent(LAST_PHASE))


def fail(folder: RunFolder) -> None:
    say(folder, FailureEvent("The file /data/a.tfrecord is damaged at record 7.", "Traceback …"))
    sys.exit(1)


def crash(_folder: RunFolder) -> None:
    print("ValueError: shapes (3,) and (4,) do not match", file=sys.stderr)
    sys.exit(3)


def abort(_folder: RunFolder) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def no_room(folder: RunFolder) -> None:
    (folder.path / "table").symlink_to("/dev/full")
    with (folder.path / "table").open("w") as table:
        table.write("row")


def patient(folder: RunFolder) -> None:
    def flush(_number: int, _frame: object) -> None:
        say(folder, NoteEvent("flushed"))
        sys.exit(STOPPED)

    signal.signal(signal.SIGTERM, flush)
    folder.scratch.mkdir()
    (folder.scratch / "half a window").write_text("…")
    say(folder, ProgressEvent(steps=7, total_steps=30, elapsed_s=0.7, total_s=None))
    sleep_on()


def stubborn(folder: RunFolder) -> None:
    signal.signal(signal.SIGTERM, lambda _number, _frame: say(folder, NoteEvent("refused")))
    say(folder, ProgressEvent(steps=7, total_steps=30, elapsed_s=0.7, total_s=None))
    sleep_on()


def leaves_a_child(folder: RunFolder) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (folder.path / "child.pid").write_text(str(child.pid))
    os._exit(0)


def race(ratio: float, rounds: int = 30) -> Callable[[RunFolder], None]:
    """Race two arms of which the second takes ``ratio`` times as long."""

    def write(folder: RunFolder) -> None:
        from tests.support.races import PlantedArm, fill_race

        wobble = [1 + 0.01 * ((7 * number) % 5 - 2) for number in range(rounds)]
        fill_race(folder, PlantedArm([20.0] * rounds), PlantedArm([20 * ratio * each for each in wobble]))
        say(folder, RaceEvent(rounds, rounds, 45, 1.0, 600.0, [{"low": 0.9, "high": 1.1}]))

    return write


def sleep_on() -> None:
    while True:
        time.sleep(1)


BEHAVIORS: dict[str, Callable[[RunFolder], None]] = {
    "done": done,
    "fail": fail,
    "crash": crash,
    "abort": abort,
    "no-room": no_room,
    "patient": patient,
    "stubborn": stubborn,
    "leaves-a-child": leaves_a_child,
    "race-faster": race(0.8),
    "race-slower": race(1.25),
    "race-undecided": race(1.25, rounds=4),
}

if __name__ == "__main__":
    main()
