"""What a job wrote beside its traces: its steps, samples, resources and files."""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

import pyarrow as pa

from pipeline_lab.analysis.declaring import growing, tables
from pipeline_lab.analysis.declaring.job_events import JobEvents
from pipeline_lab.analysis.diagnosis.impossible_rows import RowChecker
from pipeline_lab.analysis.sampling.file_sampling import Predict
from pipeline_lab.analysis.steps.local_level import LevelKeeper
from pipeline_lab.analysis.steps.step_rows import StepDivider, StepRows
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import OptionsError, StoreError, TraceIncompleteError
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.pipeline.predicted_order import predict_run, reachable_examples
from pipeline_lab.pipeline.recipe import read_recipe
from pipeline_lab.runs.record import RunKind, RunState
from pipeline_lab.runs.run_documents import (
    DataFile,
    WrittenPipeline,
    add_places,
    read_data_tables,
    read_files,
    read_written,
    written_by_recipe,
)
from pipeline_lab.runs.run_events import EventReader, find_damaged_events
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.run_tables import (
    EVALUATED,
    LABELS,
    MODEL,
    OUTPUTS,
    PADDING,
    RESOURCES,
    SAMPLES,
    STEPS,
    RunTable,
    TableReader,
    find_damage,
)
from pipeline_lab.statistics.reading_steps import Epoch


@dataclass(frozen=True, eq=False)
class JobTables:
    """What the job noted about itself, read at one moment; other jobs than ours are launched by somebody else.

    Attributes:
        read: The tables by their names, as far as they can be read.
        noted: The events, likewise; shared with what is read later, so that they become more.
        listed: The data files and the tables of ``files.json``.
        damage: What is wrong with those that are not whole, or impossible, by their names. Numbers from them would be wrong
            without a sign, so asking for one of them raises ``TraceIncompleteError``.
        divider: Divides the time among the steps.
        levels: Finds the levels of the steps.
    """

    times_steps: bool
    read: dict[str, pa.Table]
    damage: dict[str, str]
    written: WrittenPipeline | None
    environment: dict[str, Any]
    noted: JobEvents
    listed: tuple[list[DataFile], list[DataFile]]
    predict: Predict | None
    views: int
    training: TrainingOptions
    reachable: int | None
    epoch: Epoch | None = None
    is_launched: bool = True
    divider: StepDivider = field(default_factory=StepDivider)
    levels: LevelKeeper = field(default_factory=LevelKeeper)

    @property
    def steps(self) -> pa.Table:
        return self._whole(STEPS)

    @cached_property
    def step_rows(self) -> StepRows:
        """The time of the job divided among its steps."""
        return self.divider.divide(self.steps, launches_ahead=self.launches_ahead)

    @property
    def samples(self) -> pa.Table:
        return self._whole(SAMPLES)

    @property
    def labels(self) -> pa.Table:
        return self._whole(LABELS)

    @property
    def evaluated(self) -> pa.Table:
        return self._whole(EVALUATED)

    @property
    def padding(self) -> pa.Table:
        return self._whole(PADDING)

    @property
    def outputs(self) -> pa.Table:
        return self._whole(OUTPUTS)

    @property
    def resources(self) -> pa.Table:
        return self._whole(RESOURCES)

    @property
    def model(self) -> pa.Table | None:
        return self._whole(MODEL) if MODEL.name in self.read else None

    @property
    def events(self) -> JobEvents:
        """What the job reported while it worked."""
        self._check(EVENTS)
        return self.noted

    @property
    def files(self) -> list[DataFile]:
        """The data files that the job reads."""
        self._check(FILES)
        return self.listed[0]

    @property
    def data_tables(self) -> list[DataFile]:
        """The tables that it reads beside them."""
        self._check(FILES)
        return self.listed[1]

    @property
    def trains_on_gpu(self) -> bool:
        """Whether the job named a GPU as its device, such as ``GPU 0: NVIDIA H200``."""
        return "GPU" in str(self.environment.get("device", ""))

    @property
    def launches_ahead(self) -> bool:
        """Whether a step's call may return before its result is there: in a script on a GPU. Launched jobs note their results.

        Where a recording ended before it could name the device, the GPU's samples tell.
        """
        if self.is_launched:
            return False
        if "device" in self.environment:
            return self.trains_on_gpu
        sampled = self.read[RESOURCES.name]
        return any(bool(tables.valid(sampled, name).any()) for name in ("gpu_memory_bytes", "gpu_percent"))

    def with_steps(self, steps: pa.Table) -> "JobTables":
        """Return what was noted with other steps."""
        return replace(self, read=self.read | {STEPS.name: steps}, divider=StepDivider(), levels=LevelKeeper())

    def _whole(self, table: RunTable) -> pa.Table:
        self._check(table.name)
        return self.read[table.name]

    def _check(self, name: str) -> None:
        if reason := self.damage.get(name):
            raise TraceIncompleteError(reason)

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
        steps = self.read[STEPS.name]
        return int(steps.column("start_ns")[0].as_py()) if steps.num_rows else None


def read_job(folder: RunFolder) -> JobTables:
    """Read what the job wrote beside its traces; a run in progress has a part of it."""
    return JobReader(folder).read()


Read = TypeVar("Read")


class JobReader:
    """Reads what a job wrote beside its traces, and of a job in progress only what has changed since the last time."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder, self._events = folder, EventReader(folder.events)
        self._tables = [(table, TableReader(table.path(folder), table, growing.append)) for table in _TABLES]
        self._noted, self._rows = JobEvents(), RowChecker()
        self._divider, self._levels = StepDivider(), LevelKeeper()
        self._kept: dict[str, tuple[list[tuple[int, ...]], Any]] = {}

    def read(self) -> JobTables:
        """Read all that there is by now; what earlier calls returned shares the events, and sees the new ones, too."""
        folder = self._folder
        self._noted.add(self._events.read())
        about, unreadable = self._unless_kept(
            "about", lambda: _read_about(folder), folder.record, folder.files, folder.written, folder.recipe
        )
        tables = {
            table.name: reader.read()
            for table, reader in self._tables
            if table is not MODEL or table.path(folder).exists()
        }
        impossible = self._rows.find(tables, len(about.listed[0]))
        return replace(
            about,
            times_steps=folder.source.exists() or folder.steps.exists(),
            read=tables | {name: tables[name].slice(0, 0) for name in impossible},
            damage=impossible | _find_damage(folder) | unreadable,
            noted=self._noted,
            divider=self._divider,
            levels=self._levels,
        )

    def _unless_kept(self, name: str, read: Callable[[], Read], *files: Path) -> Read:
        """Return what was read last time if the files are the same."""
        versions = list(map(_version, files))
        if name not in self._kept or self._kept[name][0] != versions:
            self._kept[name] = (versions, read())
        return cast("Read", self._kept[name][1])


def _version(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _read_about(folder: RunFolder) -> tuple[JobTables, dict[str, str]]:
    """Read the documents about a job, and say which cannot be read."""
    options, environment = _options(folder), _environment(folder)
    listed, unreadable = _read_listed(folder)
    about = JobTables(
        times_steps=False,
        read={},
        damage={},
        written=_written(folder, environment),
        environment=environment,
        noted=JobEvents(),
        listed=listed,
        predict=_prediction(options, environment),
        views=1 if options is None else options.pipeline.views,
        training=TrainingOptions() if options is None else options.training,
        reachable=None if options is None else reachable_examples(options),
        epoch=None if options is None else _epoch(options, listed[0]),
        is_launched=options is not None,
    )
    return about, unreadable


_TABLES = (STEPS, SAMPLES, LABELS, EVALUATED, PADDING, OUTPUTS, RESOURCES, MODEL)


EVENTS, FILES = "events", "files"


def _read_listed(folder: RunFolder) -> tuple[tuple[list[DataFile], list[DataFile]], dict[str, str]]:
    """Return the data files and the tables beside them, and what is wrong with the document that lists them."""
    try:
        return (read_files(folder.files), read_data_tables(folder.files)), {}
    except StoreError as error:
        return ([], []), {FILES: str(error)}


def _find_damage(folder: RunFolder) -> dict[str, str]:
    """Say which tables of a launched job that ended by itself are not whole.

    A job that was killed leaves them without an end, and so may a script that records itself.
    """
    try:
        record = read_record(folder)
    except StoreError:
        return {}
    if record.options is None or record.status.state is not RunState.DONE:
        return {}
    found = {table.name: find_damage(table.path(folder), table) for table in _TABLES}
    if record.kind is RunKind.RUN:
        found[EVENTS] = find_damaged_events(folder.events)
    return {name: sentence for name, sentence in found.items() if sentence}


def _written(folder: RunFolder, environment: dict[str, Any]) -> WrittenPipeline | None:
    """Return the pipeline as written: as TensorFlow wrote it, or as the script's calls made it; with the script's lines."""
    written = read_written(folder.written)
    try:
        recipe = read_recipe(folder.recipe)
    except StoreError:  # costs the lines, not the diagnosis
        recipe = None
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
