"""The job itself, from its options to its last step. Importing this module loads TensorFlow."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from pipeline_lab.pipeline.source import has_files_of_its_own
from pipeline_lab.runs.machine.nvidia import find_gpu
from pipeline_lab.runs.run_documents import DataFile, write_files, write_written
from pipeline_lab.runs.run_events import LAST_PHASE, CheckpointEvent, NoteEvent, PhaseEvent
from pipeline_lab.runs.run_folder import RunFolder, add_environment
from pipeline_lab.runs.run_tables import EVALUATED, TableWriter
from pipeline_lab.worker.calibrate import calibrate, set_page_cache
from pipeline_lab.worker.job_context import Job, StopRequest, mark_running
from pipeline_lab.worker.note.environment import describe_environment
from pipeline_lab.worker.note.event_log import Clock, EventLog
from pipeline_lab.worker.prepare.device import JobDevice, choose_device
from pipeline_lab.worker.prepare.job_pipeline import JobData, Pipeline, describe_written, find_files, open_pipeline
from pipeline_lab.worker.prepare.user_code import UserPipeline
from pipeline_lab.worker.recipe.keeping import KeptRecipe
from pipeline_lab.worker.recipe.wrapping import ledger, note_use
from pipeline_lab.worker.record.emulated_plane import make_profiler
from pipeline_lab.worker.record.own_process import clear_on_thread
from pipeline_lab.worker.record.pipeline_model import sample_model
from pipeline_lab.worker.record.profiler import load_profiler, mark_step
from pipeline_lab.worker.record.resources import sample_resources
from pipeline_lab.worker.record.step_recorder import StepRecorder
from pipeline_lab.worker.record.step_windows import StepWindows
from pipeline_lab.worker.record.window_recorder import WindowRecorder
from pipeline_lab.worker.train.course import Course, EvaluationPasses, is_due
from pipeline_lab.worker.train.loops import make_loop, make_steps
from pipeline_lab.worker.train.loss_scale import tell_loss_scale
from pipeline_lab.worker.train.training_steps import StepCalls, Trainer
from pipeline_lab.worker.workloads.data_and_step import find_damage, find_misfit, find_tables, make_trainer
from pipeline_lab.workloads.workload import Workload


class CheckpointWriter:
    """Writes checkpoints on the training thread, as most scripts do; only the latest is kept.

    Args:
        trainer: Whose weights are written.
        folder: Where to.
        every: Steps between two checkpoints; None for none.
        log: Takes an event for each of them.
        clock: Of the job.
    """

    def __init__(self, trainer: Trainer, folder: Path, every: int | None, log: EventLog, clock: Clock) -> None:
        self._log, self._clock = log, clock
        self._every, self._path = every, str(folder / "checkpoint" / "model")
        self._checkpoint = tf.train.Checkpoint(weights=trainer.weights()) if every else None

    def after_steps(self, first: int, last: int) -> None:
        """Write a checkpoint if one became due with these steps."""
        if self._checkpoint is not None and is_due(self._every, first, last + 1):
            begun_ns = self._clock.now_ns()
            self._checkpoint.write(self._path)
            self._log.write(CheckpointEvent(begun_ns, self._clock.now_ns()))


_KEPT: list[Any] = []


def run_session(job: Job) -> None:
    """Prepare data, pipeline and step, then train.

    Raises:
        PipelineLabError: The user can act on it.
        StopRequestedError: The job was asked to stop before it trained.
    """
    options = job.options
    device = choose_device(options.training.device, options.training.replicas)
    describe_run(job.folder, device)
    keras.utils.set_random_seed(options.training.seed)
    job.enter("data")
    with open_pipeline(job) as pipeline:
        if isinstance(pipeline, UserPipeline):
            add_environment(job.folder, {"workload_code": pipeline.code})
        files = find_files(job, pipeline)
        tables = find_tables(options.workload, files)
        write_files(job.folder.files, files, tables)
        with explaining_damage(options.workload, files, job.stop):
            build_and_train(job, device, pipeline, [file.path for file in files], tables)


def build_and_train(job: Job, device: JobDevice, pipeline: Pipeline, paths: list[str], tables: list[DataFile]) -> None:
    """Build dataset and step, calibrate if requested, then train."""
    job.enter("building")
    note_missing_gpu(job, device)
    data, read = JobData(job, pipeline, paths), [*paths, *(table.path for table in tables)]
    dataset = data.training()
    written = describe_written(dataset)
    if written is not None:
        write_written(job.folder.written, written)
    if isinstance(pipeline, UserPipeline):
        note_use(dataset)
        KeptRecipe(job.folder, ledger).write(is_last=True)
    trainer = make_trainer(job.options, is_gpu=device.is_gpu, tables=tables, pipeline=pipeline)
    steps = make_steps(job, trainer, is_asynchronous=device.is_asynchronous)
    page_cache: str | None = "warm"
    if job.options.training.calibrate:
        job.enter("calibrating")
        page_cache = set_page_cache(job, read)
        event = calibrate(
            trainer,
            steps,
            lambda: trainer.distribute(data.calibration()),
            device.hold,
            is_asynchronous=device.is_asynchronous,
        )
        job.log.write(replace(event, page_cache=page_cache))
    job.stop.check()
    if page_cache is not None:  # a second request would not help
        set_page_cache(job, read)
    _train(job, device, trainer, steps, data, dataset)


def _train(job: Job, device: JobDevice, trainer: Trainer, steps: StepCalls, data: JobData, dataset: Any) -> None:
    profiling = job.options.profiling
    has_ids = carries_ids(job, dataset)
    mark_running(job.folder)
    profiler = make_profiler(trainer)
    recorded = WindowRecorder(job.folder, profiler, job.log, job.clock)
    windows = StepWindows(profiling, recorded, job.log)
    if profiling.enabled:
        load_profiler(profiler)
    with contextlib.ExitStack() as stack:
        gpu = find_gpu(device.ordinal)
        stack.enter_context(sample_resources(job.folder.resources, job.clock, windows.watch_memory, gpu))
        recorder = stack.enter_context(
            contextlib.closing(StepRecorder(job, trainer, is_asynchronous=device.is_asynchronous, has_ids=has_ids))
        )
        stack.callback(windows.finish)
        every = job.options.training.checkpoint_every
        checkpoints = CheckpointWriter(trainer, job.folder.scratch, every, job.log, job.clock)
        model = stack.enter_context(sample_model(job.folder.model, job.clock))

        def follow(iterator: Any) -> None:
            keep_iterator(iterator)
            model.follow(iterator)

        evaluated = None
        if has_ids and job.options.training.evaluate_every is not None:
            evaluated = stack.enter_context(contextlib.closing(TableWriter(job.folder.evaluated, EVALUATED)))
        evaluation = EvaluationPasses(
            job,
            trainer,
            data.evaluation,
            evaluated,
            data.first_evaluated,
            is_asynchronous=device.is_asynchronous,
        )
        course = Course(job, windows, recorder, mark_step, checkpoints.after_steps, evaluation.run)
        loop = make_loop(job, trainer, steps, course)
        loop.run(trainer.distribute(dataset), follow)
        while course.needs_new_pipeline:
            course.take_new_pipeline()
            ending = release_iterators()
            if has_files_of_its_own(job.options.pipeline):
                ending.join()  # two pipelines cannot write one cache
            loop.run(trainer.distribute(data.training()), follow)
        for sentence in tell_loss_scale(trainer.weights(), course.steps, is_asynchronous=device.is_asynchronous):
            job.log.write(NoteEvent(sentence))
        job.log.write(PhaseEvent(LAST_PHASE))  # after a request to stop, too


def describe_run(folder: RunFolder, device: JobDevice) -> None:
    """Record the environment of the run."""
    add_environment(folder, describe_environment() | device.describe())


def note_missing_gpu(job: Job, device: JobDevice) -> None:
    """Report that prefetch_to_device has no GPU to copy to."""
    if job.options.pipeline.find("prefetch_to_device") and not device.is_gpu:
        job.log.write(NoteEvent("There is no GPU to copy to: prefetch_to_device prefetches into host memory instead."))


def carries_ids(job: Job, dataset: Any) -> bool:
    """Say whether examples carry file and record; an ``id`` in the dataset of a user's module means something else."""
    return job.options.profiling.sample_probe and job.options.is_assembled and "id" in dataset.element_spec


def keep_iterator(iterator: Any) -> None:
    """Keep an iterator until the process ends: destroying one waits for its autotuner's next round, up to a minute."""
    _KEPT.append(iterator)


def release_iterators() -> threading.Thread:
    """Give up the kept iterators, on a thread that waits for their ends."""
    kept = list(_KEPT)
    _KEPT.clear()
    return clear_on_thread(kept)


@contextlib.contextmanager
def explaining_damage(workload: Workload, files: list[DataFile], stop: StopRequest) -> Iterator[None]:
    """Turn TensorFlow's errors about the data into ones that name file and record."""
    try:
        yield
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError, UnicodeDecodeError) as error:
        is_damaged = isinstance(error, tf.errors.DataLossError)  # else the message about a binary record may not decode
        damage = find_damage(files, stop) if is_damaged else find_misfit(workload, files, stop)
        if damage is None:
            raise
        raise damage from None
