"""A run folder as the worker leaves it, written by hand: two windows of three steps, one host."""

import json
import time
from pathlib import Path

from pipeline_lab.runs.record import RunRecord, RunState, RunStatus, this_process
from pipeline_lab.runs.run_documents import DataFile, write_files
from pipeline_lab.runs.run_events import CalibrationEvent, WindowEvent, format_event
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import RESOURCES, SAMPLES, STEPS, TableWriter
from tests.support.xspace import XSpace

EPOCH = 1_700_000_000_000_000_000
MS = 1_000_000
STEP_MS, WAIT_MS, WORK_MS = 10, 4, 5
STEPS_OF_RUN = 20


def write_run(
    path: Path, *, windows: int = 2, state: RunState = RunState.DONE, cached_from: int = STEPS_OF_RUN
) -> RunFolder:
    """Write a run of 20 steps of 10 ms: 4 waiting, 5 at work, 1 of Python; windows cover 3 steps from step 5 and 12.

    Args:
        path: Where.
        windows: How many of the two windows were recorded.
        state: What became of the run.
        cached_from: The step with which the second epoch begins; from there on no step waits.
    """
    folder = RunFolder(path)
    path.mkdir(parents=True)
    set_state(folder, state)
    records = 2 * cached_from
    write_files(folder.files, [DataFile("/data/a", records, 400), DataFile("/data/b", records, 400)])
    _write_tables(folder, cached_from)
    folder.events.write_text(format_event(CalibrationEvent(5.0 * MS, 9, 4.0 * MS, 9, None, time_ns=EPOCH)))
    for number in range(windows):
        write_window(folder, number, cached_from)
    return folder


def set_state(folder: RunFolder, state: RunState) -> None:
    supervisor = this_process() if state.is_live else None
    status = RunStatus(state, created_s=time.time(), supervisor=supervisor)
    folder.record.write_text(RunRecord(folder.id, "run", status).to_json())


def _start_ms(step: int, cached_from: int) -> int:
    return step * STEP_MS - WAIT_MS * max(0, step - cached_from)


def write_window(folder: RunFolder, number: int, cached_from: int = STEPS_OF_RUN) -> None:
    """Write one window of three steps and its event."""
    first = 5 + 7 * number
    start_ns = EPOCH + _start_ms(first, cached_from) * MS
    stop_ns = EPOCH + _start_ms(first + 3, cached_from) * MS
    space = XSpace()
    host = space.plane("/host:CPU")
    python, pool = host.line("python"), host.line("tf_Compute/1")
    for index in range(3):
        at = (_start_ms(first + index, cached_from) - _start_ms(first, cached_from)) * 1000
        wait = WAIT_MS * 1000 if first + index < cached_from else 0
        python.event("train", at, wait + WORK_MS * 1000, step_num=first + index, _r=1)
        python.event("IteratorGetNextOp::DoCompute", at, wait)
        pool.event("ExecutorState::Process", at + wait, WORK_MS * 1000)
    space.environment(start_ns, stop_ns)
    name = f"window-{number + 1:04d}"
    space.write(folder.window(name) / "trainer.xplane.pb", host="trainer")
    event = WindowEvent(name, first, first + 2, start_ns, stop_ns, stop_ns + MS, 0, 0, 999, 10**8, 10**8, False)
    with folder.events.open("a") as file:
        file.write(format_event(event))


def _write_tables(folder: RunFolder, cached_from: int) -> None:
    steps = TableWriter(folder.steps, STEPS)
    samples = TableWriter(folder.samples, SAMPLES)
    for step in range(STEPS_OF_RUN):
        start = EPOCH + _start_ms(step, cached_from) * MS
        wait = WAIT_MS * MS if step < cached_from else 0
        window = 0 if 5 <= step < 8 else 1 if 12 <= step < 15 else -1
        steps.append(step, step < 2, start, wait, start + wait + WORK_MS * MS, 1.0, 0.5, window, 10**8, 0)
        for index in range(4):
            samples.append(step, index % 2, (step * 2 + index // 2) % 40)
    resources = TableWriter(folder.resources, RESOURCES)
    resources.append(EPOCH, 10**8, 100.0, 3.0, None, None, False, None, None, 0.0)
    for table in (steps, samples, resources):
        table.close()


def document(folder: RunFolder) -> dict[str, object]:
    return json.loads((folder.analysis / "diagnosis.json").read_text())
