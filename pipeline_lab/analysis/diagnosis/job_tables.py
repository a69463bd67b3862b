"""What a job wrote beside its traces: its steps, samples, resources and files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipeline_lab.analysis.sampling.file_sampling import Predict
from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.pipeline.order import predict_run, reachable_examples
from pipeline_lab.pipeline.recipe import read_recipe
from pipeline_lab.runs.record import RunKind
from pipeline_lab.runs.run_documents import (
    DataFile,
    WrittenPipeline,
    add_places,
    read_data_tables,
    read_files,
    read_written,
    written_by_recipe,
)
from pipeline_lab.runs.run_events import Event, read_events
from pipeline_lab.runs.run_tables import (
    EVALUATED,
    LABELS,
    MODEL,
    OUTPUTS,
    PADDING,
    RESOURCES,
    SAMPLES,
    STEPS,
    read_table,
)
from pipeline_lab.runs.store import RunFolder, read_record
from pipeline_lab.statistics.reading_steps import Epoch


@dataclass(frozen=True, eq=False)
class JobTables:
    """What the job noted about itself, read at one moment; other jobs than ours are launched by somebody else."""

    times_steps: bool
    steps: pa.Table
    samples: pa.Table
    labels: pa.Table
    evaluated: pa.Table
    padding: pa.Table
    outputs: pa.Table
    resources: pa.Table
    model: pa.Table | None
    written: WrittenPipeline | None
    environment: dict[str, Any]
    events: list[Event]
    files: list[DataFile]
    tables: list[DataFile]
    predict: Predict | None
    views: int
    training: TrainingOptions
    reachable: int | None
    epoch: Epoch | None = None
    is_launched: bool = True

    @property
    def trained_files(self) -> list[DataFile]:
        """The files that training reads."""
        return self.files[: len(self.files) - self.training.held_out_files]

    @property
    def held_out_files(self) -> list[DataFile]:
        """The files that only evaluations read."""
        return self.files[len(self.trained_files) :]

    @property
    def origin_epoch_ns(self) -> int | None:
        """Zero of the run's axis: its first step, which comes before any window."""
        return int(self.steps.column("start_ns")[0].as_py()) if self.steps.num_rows else None


def read_job(folder: RunFolder) -> JobTables:
    """Read what the job wrote beside its traces; a run in progress has a part of it."""
    options, environment = _options(folder), _environment(folder)
    files = read_files(folder.files)
    return JobTables(
        times_steps=folder.source.exists() or folder.steps.exists(),
        steps=read_table(folder.steps, STEPS),
        samples=read_table(folder.samples, SAMPLES),
        labels=read_table(folder.labels, LABELS),
        evaluated=read_table(folder.evaluated, EVALUATED),
        padding=read_table(folder.padding, PADDING),
        outputs=read_table(folder.outputs, OUTPUTS),
        resources=read_table(folder.resources, RESOURCES),
        model=read_table(folder.model, MODEL) if folder.model.exists() else None,
        written=_written(folder, environment),
        environment=environment,
        events=read_events(folder.events),
        files=files,
        tables=read_data_tables(folder.files),
        predict=_prediction(options, environment),
        views=1 if options is None else options.pipeline.views,
        training=TrainingOptions() if options is None else options.training,
        reachable=None if options is None else reachable_examples(options),
        epoch=None if options is None else _epoch(options, files),
        is_launched=options is not None,
    )


def _written(folder: RunFolder, environment: dict[str, Any]) -> WrittenPipeline | None:
    """Return the pipeline as written: as TensorFlow wrote it, or as the script's calls made it; with the script's lines."""
    written, recipe = read_written(folder.written), read_recipe(folder.recipe)
    if recipe is None or not recipe.calls:
        return written
    if written is None:
        return written_by_recipe(recipe, int(environment.get("cores") or 1))
    return add_places(written, recipe)


def _options(folder: RunFolder) -> RunOptions | None:
    """Return the run's options, or None where they are not those of a single pipeline."""
    try:
        record = read_record(folder)
        return read_options(record.options or {}) if record.kind is RunKind.RUN else None
    except (OptionsError, StoreError):
        return None


def _prediction(options: RunOptions | None, environment: dict[str, Any]) -> Predict | None:
    """Return how to predict the run's order from the examples of each file, or None where that is not known."""
    if options is None or not options.workload.has_files or not options.is_assembled:
        return None
    views, cores = options.pipeline.views, max(1, int(environment.get("machine_cores") or 1))
    return lambda examples, batches: predict_run(options, examples // views, batches, cores=cores)


def _epoch(options: RunOptions, files: Sequence[DataFile]) -> Epoch | None:
    """Return what the training step is sent of one pass over the data, None where that is not known."""
    trained = files[: len(files) - options.training.held_out_files]
    counted = [file.records for file in trained if file.records is not None]
    if not options.is_assembled or not any(counted) or len(counted) < len(trained):
        return None
    return options.pipeline.epoch([records // options.pipeline.views for records in counted])


def _environment(folder: RunFolder) -> dict[str, Any]:
    try:
        return read_record(folder).environment
    except StoreError:
        return {}
