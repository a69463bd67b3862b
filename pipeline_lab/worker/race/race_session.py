"""A race from its options to its last round. Importing this module loads TensorFlow."""

import contextlib
from pathlib import Path

import keras

from pipeline_lab.errors import DataError
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.runs.machine.nvidia import find_gpu
from pipeline_lab.runs.run_documents import DataFile, write_files
from pipeline_lab.runs.run_events import NoteEvent, PhaseEvent
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import BLOCKS, TableWriter
from pipeline_lab.worker.job_context import Job, StopRequest, mark_running
from pipeline_lab.worker.note.event_log import Clock, EventLog
from pipeline_lab.worker.prepare.device import JobDevice, choose_device
from pipeline_lab.worker.prepare.job_pipeline import Pipeline, find_files, open_pipeline
from pipeline_lab.worker.prepare.user_code import UserPipeline
from pipeline_lab.worker.race.blocks import Arm, LoadMeter, count_epoch_batches
from pipeline_lab.worker.race.buffers import UNKNOWN_BUFFERS, Buffers, make_steady
from pipeline_lab.worker.race.rounds import RaceJob, RaceRunner
from pipeline_lab.worker.record.emulated_plane import make_profiler
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
    note_missing_gpu,
)
from pipeline_lab.worker.workloads.data_and_step import find_tables, make_trainer


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
            _record_windows(folder.scratch, jobs, arms, log, stop)


def _record_windows(scratch: Path, jobs: list[Job], arms: list[Arm], log: EventLog, stop: StopRequest) -> None:
    """Record one profile window of every arm that allows it, to learn what its device waits for."""
    log.write(PhaseEvent("recording"))
    try:
        _record_each(scratch, jobs, arms, stop)
    except Exception as error:  # must not spoil the finished race
        log.write(NoteEvent(f"The arms' profile windows were not recorded: {error}."))


def _record_each(scratch: Path, jobs: list[Job], arms: list[Arm], stop: StopRequest) -> None:
    for arm in arms:
        arm.rest()
    for job, arm in zip(jobs, arms, strict=True):
        if job.options.profiling.enabled and not stop.is_set:
            own_log = EventLog(job.folder.events)
            recorder = WindowRecorder(job.folder, make_profiler(arm.trainer), own_log, job.clock, scratch=scratch)
            arm.run_window(recorder, mark_step)
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
    dataset = make_steady(lambda: pipeline.make_dataset([file.path for file in files], cache))
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
    steps = make_steps(job, trainer, is_asynchronous=device.is_asynchronous)
    return Arm(job, trainer, steps, recorder, iterator, Buffers(iterator))


def _warm_up(name: str, job: Job, arm: Arm, files: list[DataFile], limit_s: float) -> None:
    records = None if any(file.records is None for file in files) else sum(file.records or 0 for file in files)
    trouble = arm.warm_up(count_epoch_batches(job.options, records), limit_s)
    if trouble is not None:
        job.log.write(NoteEvent(f"{name}: {trouble}"))
