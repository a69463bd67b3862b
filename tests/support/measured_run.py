"""The run folder of the job that `tests.support.measured` describes: its prediction adds up in the head all the same."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_documents import DataFile, WrittenPipeline, write_files, write_written
from pipeline_lab.runs.run_events import LAST_PHASE, CalibrationEvent, PhaseEvent, format_event
from pipeline_lab.runs.run_folder import RunFolder, update_record
from pipeline_lab.runs.run_tables import MODEL, RESOURCES, SAMPLES, STEPS, TableWriter
from pipeline_lab.runs.store import RunStore
from tests.support.measured import BATCH, EXAMPLE_BYTES, MAP_MS, STEP_MS, options
from tests.support.models import ASYNC_KNOWN, KNOWN, MS, UNKNOWN, Node, model_table
from tests.support.run_folders import set_state
from tests.support.scripts import recipe

EPOCH = 1_700_000_000_000_000_000
CORES, THREADS, CPU_MS = 4, 8, 4.0
STEPS_OF_RUN, WARMUP = 60, 10
COLD_MS = 2.0


def make_measured_run(
    store: RunStore, what: RunOptions | None = None, *, cpu: Mapping[str, float] | None = None, cold_steps: int = 0
) -> RunFolder:
    """Write a run of 60 steps of 20 ms, of which 15 ms are waiting; its map takes 2 ms for each of ten examples.

    Args:
        store: Where.
        what: Its options; those of `tests.support.measured` unless said otherwise.
        cpu: ``step_ms`` and ``pipeline_ms``, processor time of step and pipeline alone; not noted without.
        cold_steps: Steps of a first epoch in which every example is read for 2 ms, so that a step takes 40 ms; without,
            nobody counted epochs.
    """
    told = what or options()
    folder = store.create(told, render_source(told))
    periods_ms = [BATCH * (MAP_MS + (COLD_MS if step < cold_steps else 0.0)) for step in range(STEPS_OF_RUN)]
    starts_ms = list(accumulate(periods_ms, initial=0.0))
    steps, resources = TableWriter(folder.steps, STEPS), TableWriter(folder.resources, RESOURCES)
    for step, period_ms in enumerate(periods_ms):
        start = EPOCH + round(starts_ms[step] * MS)
        wait = round((period_ms - STEP_MS) * MS)
        steps.append(step, step < WARMUP, start, wait, start + round(period_ms * MS), 1.0, 0.5, -1, 10**8, 0)
        resources.append(start + MS, 10**8, 100 * CPU_MS / period_ms, 0.0, None, None, False, None, None, 0.0)
    steps.close()
    resources.close()
    if cold_steps:
        _write_samples(folder, cold_steps * BATCH)
    _write_model(folder, starts_ms, cold_steps)
    write_written(folder.written, WrittenPipeline((), THREADS))
    alone = cpu or {}
    event = CalibrationEvent(
        STEP_MS * MS,
        9,
        periods_ms[0] * MS,
        9,
        None,
        device_only_cpu_ns=alone["step_ms"] * MS if alone else None,
        pipeline_only_cpu_ns=alone["pipeline_ms"] * MS if alone else None,
        time_ns=EPOCH,
    )
    folder.events.write_text(format_event(event) + format_event(PhaseEvent(LAST_PHASE)))
    set_state(folder, RunState.DONE)
    update_record(folder, lambda record: replace(record, environment={"cores": CORES}))
    return folder


def _write_samples(folder: RunFolder, records: int) -> None:
    write_files(folder.files, [DataFile("/data/a", records, records * EXAMPLE_BYTES)])
    samples = TableWriter(folder.samples, SAMPLES)
    for example in range(STEPS_OF_RUN * BATCH):
        samples.append(example // BATCH, 0, example % records)
    samples.close()


def _write_model(folder: RunFolder, starts_ms: list[float], cold_steps: int) -> None:
    def nodes(batches: int) -> list[Node]:
        examples = batches * BATCH
        return [
            Node(0, -1, "Root", batches),
            Node(1, 0, "Prefetch", batches, node_class=ASYNC_KNOWN, limit=2.0),
            Node(2, 1, "BatchV2", batches, ratio=BATCH, produced_bytes=batches * BATCH * EXAMPLE_BYTES),
            Node(3, 2, "Map", examples, ms=examples * MAP_MS, produced_bytes=examples * EXAMPLE_BYTES),
            Node(4, 3, "ForeverRepeat", examples, node_class=UNKNOWN),
            Node(
                5,
                4,
                "TFRecord",
                examples,
                ms=min(batches, cold_steps) * BATCH * COLD_MS,
                node_class=KNOWN,
                produced_bytes=examples * EXAMPLE_BYTES,
            ),
        ]

    at = range(10, STEPS_OF_RUN + 1, 10)
    table = model_table(*((starts_ms[step], nodes(step)) for step in at), origin_ns=EPOCH)
    writer = TableWriter(folder.model, MODEL)
    writer.extend(*(column.to_pylist() for column in table.columns))
    writer.close()


def make_watched_run(store: RunStore) -> RunFolder:
    """Write the same run as a script's that was watched: without options, with the calls of `tests.support.scripts`."""
    folder = make_measured_run(store)
    folder.written.unlink()
    folder.recipe.write_text(recipe().to_json())
    update_record(folder, lambda record: replace(record, options=None))
    return folder
