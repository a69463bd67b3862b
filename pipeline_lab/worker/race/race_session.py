"""A race from its options to its last round. Importing this module loads TensorFlow."""

import contextlib
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf

from pipeline_lab.errors import DataError
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.runs.nvidia import find_gpu
from pipeline_lab.runs.run_documents import DataFile, write_files
from pipeline_lab.runs.run_events import NoteEvent, PhaseEvent
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import BLOCKS, TableWriter
from pipeline_lab.worker.job_context import Job, StopRequest
from pipeline_lab.worker.note.event_log import Clock, EventLog
from pipeline_lab.worker.prepare.device import JobDevice, choose_device
from pipeline_lab.worker.prepare.job_pipeline import Pipeline, find_files, open_pipeline
from pipeline_lab.worker.prepare.user_code import UserPipeline
from pipeline_lab.worker.race.blocks import Arm, LoadMeter, count_epoch_batches
from pipeline_lab.worker.race.rounds import RaceJob, RaceRunner
from pipeline_lab.worker.record.emulated_plane import make_profiler
from pipeline_lab.worker.record.pipeline_model import may_change
from pipeline_lab.worker.record.profiler import mark_step
from pipeline_lab.worker.record.resources import sample_resources
from pipeline_lab.worker.record.step_recorder import StepRecorder
from pipeline_lab.worker.record.window_recorder import WindowRecorder
from pipeline_lab.worker.train.loops import make_steps
from pipeline_lab.worker.training_session import (
    carries_ids,
    describe_run,
    explaining_damage,
    keep_iterator,
    mark_running,
    note_missing_gpu,
)
from pipeline_lab.worker.workloads.data_and_step import find_tables, make_trainer

UNKNOWN_BUFFERS = "A race must know what an idle pipeline has buffered, which tf.data does not report"

_ASYNCHRONOUS = (2, 4, 6)
"""``ASYNC_INTERLEAVE_MANY``, ``ASYNC_KNOWN_RATIO`` and ``ASYNC_UNKNOWN_RATIO`` of TensorFlow's ``model.proto``."""

Parameters = tuple[tuple[int, str, float], ...]


class Buffers:
    """Reads from tf.data's model what an iterator has buffered; takes some tens of microseconds."""

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def batches(self) -> float:
        """Return the batches that the elements in all buffers amount to.

        An element counts as its share of a batch. A shuffle buffer does not count: nothing refills it without requests.
        """
        return sum(float(node.buffered_elements) / visits for node, visits in self._nodes() if _is_asynchronous(node))

    def elements(self) -> int:
        """Return the number of elements in all buffers; it stays constant once they are full."""
        return sum(int(node.buffered_elements) for node, _ in self._nodes() if _is_asynchronous(node))

    def has_room(self) -> bool:
        """Say whether a prefetch of fixed depth is not full, so that its thread is still busy."""
        return any(
            node.buffered_elements < parameter.value
            for node, _ in self._nodes()
            if node.name == "Prefetch"
            for parameter in node.parameters
            if parameter.name == "buffer_size" and not may_change(parameter)
        )

    def tuned(self) -> Parameters:
        """Return the parameters that the autotuner may change, with their current values."""
        return tuple(
            (node.id, parameter.name, parameter.state_value)
            for node, _ in self._nodes()
            for parameter in node.parameters
            if may_change(parameter)
        )

    def _nodes(self) -> Iterator[tuple[Any, float]]:
        """Walk the model from the consumer to the sources, each node with its elements per batch."""
        model = self._model()
        waiting = [(model.output, 1.0)]
        while waiting:
            number, visits = waiting.pop()
            node = model.nodes[number]
            yield node, visits
            below = visits * (node.ratio if node.ratio > 0 else 1.0)
            waiting += [(child, below) for child in node.inputs]

    def _model(self) -> Any:
        try:
            return tf.data.experimental.get_model_proto(self._iterator)
        except tf.errors.NotFoundError:
            raise DataError(
                f"{UNKNOWN_BUFFERS} without its performance model; do not change options.autotune.enabled of the dataset."
            ) from None
        except ValueError:
            raise DataError(
                f"{UNKNOWN_BUFFERS} for batches of several replicas; race with training.replicas = 1, or compare recorded runs."
            ) from None


def _is_asynchronous(node: Any) -> bool:
    return int(node.node_class) in _ASYNCHRONOUS


def run_race(folder: RunFolder, options: RaceOptions, log: EventLog, stop: StopRequest) -> None:
    """Prepare every arm, warm it up, then race.

    Raises:
        PipelineLabError: The user can act on it.
        StopRequestedError: The race was stopped before its first round.
    """
    device = choose_device(options.arms[0].training.device)
    describe_run(folder, device)
    clock = Clock()
    jobs = [Job(folder.arm(number), arm, log, stop, clock) for number, arm in enumerate(options.arms)]
    _enter("data", log, stop)
    with contextlib.ExitStack() as stack:
        pipelines = [_open(job, stack) for job in jobs]
        files = [_prepare(job, pipeline) for job, pipeline in zip(jobs, pipelines, strict=True)]
        for job, part in zip(jobs, files, strict=True):
            stack.enter_context(explaining_damage(job.options.workload, part, stop))
        _enter("building", log, stop)
        arms = [
            _build(job, pipeline, part, device, stack, str(folder.scratch / f"cache-{number}"))
            for number, (job, pipeline, part) in enumerate(zip(jobs, pipelines, files, strict=True))
        ]
        _enter("warmup", log, stop)
        for name, job, arm, pipeline, part in zip(options.arm_names, jobs, arms, pipelines, files, strict=True):
            if isinstance(pipeline, UserPipeline):
                pipeline.first_batch.expect(pipeline.maker)
            _warm_up(name, job, arm, part, options.warmup_seconds)
        mark_running(folder)
        table = stack.enter_context(contextlib.closing(TableWriter(folder.blocks, BLOCKS)))
        gpu = find_gpu(device.ordinal)
        stack.enter_context(sample_resources(folder.resources, clock, lambda _: False, gpu))
        _enter("racing", log, stop)
        RaceRunner(RaceJob(options, log, stop, table), arms, LoadMeter(gpu)).run()
        if not stop.is_set:
            _record_windows(jobs, arms, log, stop)


def _record_windows(jobs: list[Job], arms: list[Arm], log: EventLog, stop: StopRequest) -> None:
    """Record one profile window of every arm that allows it, to learn what its device waits for."""
    log.write(PhaseEvent("recording"))
    try:
        _record_each(jobs, arms, stop)
    except Exception as error:  # must not spoil the finished race
        log.write(NoteEvent(f"The arms' profile windows were not recorded: {error}."))


def _record_each(jobs: list[Job], arms: list[Arm], stop: StopRequest) -> None:
    for arm in arms:
        arm.rest()
    for job, arm in zip(jobs, arms, strict=True):
        if job.options.profiling.enabled and not stop.is_set:
            own_log = EventLog(job.folder.events)
            arm.run_window(WindowRecorder(job.folder, make_profiler(arm.trainer), own_log, job.clock), mark_step)
            arm.rest()


def _enter(phase: str, log: EventLog, stop: StopRequest) -> None:
    stop.check()
    log.write(PhaseEvent(phase))


def _open(job: Job, stack: contextlib.ExitStack) -> Pipeline:
    """Import an arm's pipeline, seeded because a user's module may initialize its model."""
    keras.utils.set_random_seed(job.options.training.seed)
    return stack.enter_context(open_pipeline(job))


def _prepare(job: Job, pipeline: Pipeline) -> list[DataFile]:
    files = find_files(job, pipeline)
    write_files(job.folder.files, files, find_tables(job.options.workload, files))
    return files


def _build(
    job: Job, pipeline: Pipeline, files: list[DataFile], device: JobDevice, stack: contextlib.ExitStack, cache: str
) -> Arm:
    """Build pipeline and model; arms with equal seeds start with the same weights."""
    keras.utils.set_random_seed(job.options.training.seed)
    if device.is_gpu and job.options.pipeline.find("prefetch_to_device"):
        raise DataError(f"{UNKNOWN_BUFFERS} for prefetch_to_device; race with prefetch, or compare recorded runs.")
    note_missing_gpu(job, device)
    dataset = pipeline.make_dataset([file.path for file in files], cache)
    tables = find_tables(job.options.workload, files)
    trainer = make_trainer(job.options, is_gpu=device.is_gpu, tables=tables, pipeline=pipeline)
    has_ids = carries_ids(job, dataset)
    recorder = stack.enter_context(
        contextlib.closing(StepRecorder(job, trainer, is_asynchronous=device.is_asynchronous, has_ids=has_ids))
    )
    iterator = iter(trainer.distribute(dataset))
    keep_iterator(iterator)
    if isinstance(pipeline, UserPipeline):
        pipeline.first_batch.rest()
    return Arm(job, trainer, make_steps(job, trainer), recorder, iterator, Buffers(iterator))


def _warm_up(name: str, job: Job, arm: Arm, files: list[DataFile], limit_s: float) -> None:
    records = None if any(file.records is None for file in files) else sum(file.records or 0 for file in files)
    trouble = arm.warm_up(count_epoch_batches(job.options, records), limit_s)
    if trouble is not None:
        job.log.write(NoteEvent(f"{name}: {trouble}"))
