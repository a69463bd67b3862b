"""What the worker does for a workload: find or make its files, name the record behind an error, build its training step.

Each workload has a module here, named as its kind, with a subclass of :class:`DataAndStep` that it calls
``DATA_AND_STEP``. Only the module of a job's own workload is imported.
"""

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import keras
import tensorflow as tf

from pipeline_lab.errors import DataError
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.worker.job_context import StopRequest
from pipeline_lab.worker.note.event_log import EventLog
from pipeline_lab.worker.prepare.user_code import UserPipeline
from pipeline_lab.worker.record.profiler import mark_launch
from pipeline_lab.worker.train.emulated_device import EmulatedDevice, EmulatedTrainer, step_durations
from pipeline_lab.worker.train.training_steps import Trainer
from pipeline_lab.worker.workloads.data_files import DataRecipe, cached_files
from pipeline_lab.workloads.workload import Workload

SEARCH_S = 60.0
"""The search for the record behind an error ends after this time; then TensorFlow's own message is shown."""
MOMENTUM = 0.9

WorkloadT = TypeVar("WorkloadT", bound=Workload)
Search = Callable[[Path, Callable[[], None]], DataError | None]
"""Names the first record of a file that does not hold what is expected; what it calls now and then ends it by raising."""


class DataAndStep(Generic[WorkloadT]):
    """The TensorFlow half of a workload.

    Args:
        workload: Its options.
    """

    def __init__(self, workload: WorkloadT) -> None:
        self.workload = workload

    def find_files(self, log: EventLog, stop: StopRequest) -> list[DataFile]:
        """Return the files that the workload reads; the lab's own are made on first use.

        Raises:
            DataError: They are missing, damaged, or there is no room for them.
            StopRequestedError: The job was stopped meanwhile.
        """
        return cached_files(self.recipe(), log, stop)

    def recipe(self) -> DataRecipe:
        """Describe how to make the workload's files."""
        raise NotImplementedError

    def find_tables(self, folder: Path) -> list[DataFile]:
        """Return the tables next to the files."""
        del folder
        return []

    def searches(self) -> tuple[Search, ...]:
        """Return what names a record or file of the user's that does not hold what the options expect."""
        return ()

    def make_trainer(self, options: RunOptions, *, is_gpu: bool, tables: Sequence[DataFile], pipeline: Any) -> Trainer:
        """Build the training step; arguments as for :func:`make_trainer`."""
        raise NotImplementedError


def data_and_step_of(workload: Workload) -> DataAndStep[Any]:
    """Open the TensorFlow half of a workload."""
    module = importlib.import_module(f"{__package__}.{workload.kind}")
    half: type[DataAndStep[Any]] = module.DATA_AND_STEP
    return half(workload)


def prepare_files(workload: Workload, log: EventLog, stop: StopRequest) -> list[DataFile]:
    """Return the files that a workload reads; see :meth:`DataAndStep.find_files`."""
    return data_and_step_of(workload).find_files(log, stop)


def count_in_views(files: Sequence[DataFile], views: int) -> list[DataFile]:
    """Count the files' records in the views that become of each: every one is an example with an id of its own."""
    return [replace(file, records=None if file.records is None else file.records * views) for file in files]


def find_tables(workload: Workload, files: Sequence[DataFile]) -> list[DataFile]:
    """Return the tables next to the files."""
    return data_and_step_of(workload).find_tables(Path(files[0].path).parent) if files else []


def make_trainer(
    options: RunOptions, *, is_gpu: bool, tables: Sequence[DataFile] = (), pipeline: Any = None
) -> Trainer:
    """Build the step of a run's workload, or the emulated accelerator in its place.

    Args:
        options: Of the run.
        is_gpu: It trains on a GPU.
        tables: The tables next to its files.
        pipeline: Of a module of the user's, which brings its own step.
    """
    if options.training.is_emulated:
        device = EmulatedDevice(step_durations(options.training))
        came = pipeline.first_batch.came if isinstance(pipeline, UserPipeline) else None
        return EmulatedTrainer(device, mark_launch, came)
    half = data_and_step_of(options.workload)
    return half.make_trainer(options, is_gpu=is_gpu, tables=tables, pipeline=pipeline)


def make_optimizer(training: TrainingOptions) -> Any:
    """Return stochastic gradient descent with momentum, its loss scaled where half precision needs it."""
    optimizer = keras.optimizers.SGD(training.learning_rate, momentum=MOMENTUM)
    if training.precision == "mixed_float16":
        return keras.mixed_precision.LossScaleOptimizer(optimizer)
    return optimizer


class _SearchEndedError(Exception):
    """The search took longer than it may."""


def find_misfit(
    workload: Workload, files: Sequence[DataFile], stop: StopRequest, limit_s: float = SEARCH_S
) -> DataError | None:
    """Name the first record or file of a user's that does not hold what the options expect of it.

    Args:
        workload: Says what is expected.
        files: To search.
        stop: Ends the search.
        limit_s: Give up after this time, s.

    Raises:
        StopRequestedError: The job was stopped meanwhile.
    """
    end_s = time.monotonic() + limit_s

    def check() -> None:
        stop.check()
        if time.monotonic() > end_s:
            raise _SearchEndedError

    try:
        for search in data_and_step_of(workload).searches():
            for file in files:
                if (misfit := search(Path(file.path), check)) is not None:
                    return misfit
    except _SearchEndedError:
        pass
    return None


def find_damage(files: Sequence[DataFile], stop: StopRequest) -> DataError | None:
    """Name the first record whose checksum is wrong, by reading every file to its end.

    Raises:
        StopRequestedError: The job was stopped meanwhile.
    """
    for file in files:
        record = 0
        try:
            for _ in tf.data.TFRecordDataset(file.path):
                stop.check()
                record += 1
        except tf.errors.OpError as error:
            if isinstance(error, tf.errors.DataLossError):
                return DataError(f"{file.path} is damaged at record {record}; write it again, or leave it out.")
            return DataError(f"{Path(file.path)} cannot be read any more: {error.message}.")
    return None
