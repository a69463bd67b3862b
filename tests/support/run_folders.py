"""Run folders as a worker would leave them, without a worker: for the store, the app and the command line."""

from dataclasses import replace
from pathlib import Path

from pipeline_lab.options.presets import find_preset
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.record import Process, RunState, this_process
from pipeline_lab.runs.run_documents import DataFile, write_files
from pipeline_lab.runs.run_events import (
    LAST_PHASE,
    Event,
    FailureEvent,
    NoteEvent,
    PhaseEvent,
    ProgressEvent,
    WindowEvent,
    format_event,
)
from pipeline_lab.runs.run_folder import RunFolder, update_record
from pipeline_lab.runs.run_tables import NAMES, RESOURCES, SAMPLES, STEPS, TableWriter
from pipeline_lab.runs.store import RunStore

MS = 1_000_000
START_NS = 1_767_268_800_000_000_000
STEP_NS, WAIT_NS = 20 * MS, 12 * MS


def make_run(
    store: RunStore, preset: str = "baseline", state: RunState = RunState.DONE, steps: int = 120, reason: str = ""
) -> RunFolder:
    """Write a whole run: 20 ms per step of which 12 ms are waiting, two windows of ten steps."""
    options = find_preset(preset).options
    folder = store.create(options, render_source(options))
    write_steps(folder, steps)
    write_files(folder.files, [DataFile(f"/data/train-{index:02d}.tfrecord", 1000, 500_000) for index in range(4)])
    events: list[Event] = [PhaseEvent("importing"), PhaseEvent("training"), ProgressEvent(steps - 5, 200, 2.3, None)]
    events += [window_event(index, 5 + 50 * index) for index in range(2)]
    events += [NoteEvent("The data files were in the page cache.")]
    if state is RunState.FAILED:
        events.append(FailureEvent(reason, "Traceback (most recent call last):\n  ValueError: planted"))
    folder.events.write_text("".join(format_event(event) for event in events), encoding="utf-8")
    set_state(folder, state, reason)
    return folder


def set_state(folder: RunFolder, state: RunState, reason: str = "") -> None:
    """Put a run into a state; live ones are owned by the calling process, and only those that are done report their end."""
    if folder.events.exists():
        reported = folder.events.read_text(encoding="utf-8").splitlines(keepends=True)
        reported = [line for line in reported if f'"{LAST_PHASE}"' not in line]
        end = [format_event(PhaseEvent(LAST_PHASE))] if state is RunState.DONE else []
        folder.events.write_text("".join(reported + end), encoding="utf-8")
    owner: Process | None = this_process() if state.is_live else None
    started = START_NS / 1e9
    update_record(
        folder,
        lambda record: replace(
            record,
            status=record.status.change(
                state,
                reason=reason,
                supervisor=owner,
                started_s=started,
                ended_s=None if state.is_live else started + 42,
                exit_code=None if state.is_live else int(state is RunState.FAILED),
            ),
            environment={"python": "3.12", "tensorflow": "2.21.0", "cores": 2, "gpus": []},
        ),
    )


def write_steps(folder: RunFolder, steps: int) -> None:
    """Write the tables of a worker that made that many steps."""
    table = TableWriter(folder.steps, STEPS)
    samples, names = TableWriter(folder.samples, SAMPLES), TableWriter(folder.names, NAMES)
    resources = TableWriter(folder.resources, RESOURCES)
    for step in range(steps):
        start = START_NS + step * STEP_NS
        window = next((index for index in range(2) if 5 + 50 * index <= step < 15 + 50 * index), -1)
        loss, accuracy = 2.3 / (1 + step / 50), step / (steps + 20)
        table.append(step, step < 5, start, WAIT_NS, start + STEP_NS - MS, loss, accuracy, window, 900_000_000, 0)
        samples.extend([step] * 8, [step % 4] * 8, [8 * step // 4 + index for index in range(8)])
        names.extend([step] * 8, [f"{step}-{index}" for index in range(8)])
        if step % 10 == 0:
            used = (120.0, 15.0, None, None, step in (20, 70), None, None, 0.0)
            resources.append(start, 900_000_000 + step * 100_000, *used)
    for writer in (table, samples, names, resources):
        writer.close()


def window_event(index: int, first: int) -> WindowEvent:
    start = START_NS + first * STEP_NS
    return WindowEvent(
        name=f"2026_01_01_12_00_{index:02d}",
        first_step=first,
        last_step=first + 9,
        started_ns=start,
        stopped_ns=start + 10 * STEP_NS,
        flushed_ns=start + 16 * STEP_NS,
        start_cost_ns=3 * MS,
        stop_cost_ns=MS,
        size_bytes=1_500_000,
        rss_before_bytes=900_000_000,
        rss_peak_bytes=930_000_000,
        shortened=False,
    )


def make_samples(root: Path) -> Path:
    """Write a folder of two sample runs and return it."""
    samples = RunStore(root)
    for preset in ("baseline", "optimised"):
        folder = make_run(samples, preset)
        folder.path.rename(root / preset)
        update_record(RunFolder(root / preset), lambda record, name=preset: replace(record, id=name))
    return root
