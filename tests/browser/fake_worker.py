"""Stands in for the worker at a pace that one can watch: 25 steps per half second, no TensorFlow.

A run trains until the file `FINISH` is in its folder, so that nobody has to look before it is over. A run called
``fail`` breaks after the first steps; one that is told to stop ends as the real worker does. A race runs a round every
fifth of a second, the last one when the file is there, and its candidates take a fifth less time. A run loads nothing of what
only races need. The run of a name of its own is the real worker's.
"""

import itertools
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline_lab.runs.record import RunKind, RunState
from pipeline_lab.runs.run_documents import DataFile, write_files
from pipeline_lab.runs.run_events import LAST_PHASE, Event, FailureEvent, PhaseEvent, ProgressEvent, format_event
from pipeline_lab.runs.run_folder import RunFolder, read_record, update_record
from pipeline_lab.runs.run_tables import SAMPLES, STEPS, TableWriter

MS = 1_000_000
ROUND_S = 0.2
STEP_S, WAIT_NS = 0.02, 12 * MS
WARMUP = 5
FINISH, REAL = "finish", "real"


def main() -> None:
    if sys.argv[1] == "--wait":
        print("ready", flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        work(RunFolder(Path(line.rstrip("\n"))))
    else:
        work(RunFolder(Path(sys.argv[1])))


def work(folder: RunFolder) -> None:
    record = read_record(folder)
    if record.name == REAL:
        os.execv(sys.executable, [sys.executable, "-m", "tests.support.real_worker", str(folder.path)])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if record.kind is RunKind.RACE:
        race(folder, record.options or {})
        return
    total = (record.options or {})["training"]["steps"]
    say(folder, PhaseEvent("training"))
    update_record(
        folder,
        lambda found: replace(found, status=found.status.change(RunState.RUNNING), environment={"host": "fake"}),
    )
    write_files(folder.files, [DataFile(f"/data/train-{index:02d}.tfrecord", 1000, 500_000) for index in range(4)])
    steps = TableWriter(folder.steps, STEPS, seconds_per_batch=0.2)
    samples = TableWriter(folder.samples, SAMPLES, seconds_per_batch=0.2)
    try:
        for step in itertools.count():
            if (folder.path / FINISH).exists():
                break
            if record.name == "fail" and step == 20:
                say(folder, FailureEvent("The file /data/a_*b*.tfrecord is damaged at record 7.", "Traceback: planted"))
                sys.exit(1)
            train(steps, samples, step)
            if step % 5 == 0 and step >= WARMUP:
                say(folder, ProgressEvent(min(step - WARMUP, total - 1), total, step * STEP_S, None))
    finally:
        steps.close()
        samples.close()
    say(folder, ProgressEvent(total, total, total * STEP_S, None))
    say(folder, PhaseEvent(LAST_PHASE))


def race(folder: RunFolder, document: dict[str, Any]) -> None:
    import numpy as np

    from pipeline_lab.options.race_options import read_race_options
    from tests.support.races import PlantedArm, fill_race
    from tests.support.saved_runs import race_event

    options = read_race_options(document)
    say(folder, PhaseEvent("racing"))
    update_record(folder, lambda found: replace(found, status=found.status.change(RunState.RUNNING)))
    wobble = np.random.default_rng(0).normal(0, 0.02, (len(options.arms), options.pairs))
    step_ms = [20 * (1.0 if arm == 0 else 0.8) * np.exp(wobble[arm]) for arm in range(len(options.arms))]
    for number in range(options.pairs):
        time.sleep(ROUND_S)
        while number + 1 == options.pairs and not (folder.path / FINISH).exists():
            time.sleep(ROUND_S)
        say(folder, race_event(step_ms, number + 1, options))
    fill_race(folder, *(PlantedArm([float(ms) for ms in each]) for each in step_ms), block_steps=options.block_steps)


def train(steps: TableWriter, samples: TableWriter, step: int) -> None:
    start = time.time_ns()
    time.sleep(STEP_S)
    loss, accuracy = 2.3 / (1 + step / 50), step / (step + 20)
    steps.append(step, step < WARMUP, start, WAIT_NS, time.time_ns(), loss, accuracy, -1, 900_000_000, 0)
    samples.extend([step] * 4, range(4), [step] * 4)


def say(folder: RunFolder, event: Event) -> None:
    with folder.events.open("a", encoding="utf-8") as events:
        events.write(format_event(event))


if __name__ == "__main__":
    main()
