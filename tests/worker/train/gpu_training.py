"""What the tests of training do on the pretend GPU."""

import itertools
import time
from pathlib import Path
from typing import Any
from unittest import mock

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from pipeline_lab.capture.device_use import are_devices_in_use, note_new_sessions
from pipeline_lab.capture.profile_windows import ProfileWindows
from pipeline_lab.options.run_options import read_options
from pipeline_lab.runs.machine.nvidia import Gpu
from pipeline_lab.worker.calibrate import time_step
from pipeline_lab.worker.note.event_log import Clock
from pipeline_lab.worker.race.blocks import Arm, LoadMeter
from pipeline_lab.worker.race.buffers import Buffers
from pipeline_lab.worker.record.profiler import TensorFlowProfiler, mark_step
from pipeline_lab.worker.record.step_recorder import StepRecorder
from pipeline_lab.worker.record.step_results import ResultReader
from pipeline_lab.worker.record.step_windows import StepWindows
from pipeline_lab.worker.record.window_recorder import WindowRecorder
from pipeline_lab.worker.train.course import Course, EvaluationPasses
from pipeline_lab.worker.train.loops import make_loop, make_steps
from pipeline_lab.worker.train.placement import PlacedTrainer, place
from pipeline_lab.worker.train.training_steps import Batch, PythonSteps, Trainer
from pipeline_lab.worker.training_session import CheckpointWriter
from pipeline_lab.worker.workloads.data_and_step import make_trainer
from tests.worker.fakes import make_job

EXAMPLES, SIDE = 4, 8


class OneProduct(PlacedTrainer):
    """Multiplies each batch with its weights, which it changes; the loss is the number of the step."""

    def __init__(self) -> None:
        self.factors, self.number = tf.Variable(tf.ones([SIDE, SIDE])), tf.Variable(0.0)
        super().__init__(place(1, is_gpu=True), self._multiply, self._multiply)

    def weights(self) -> list[Any]:
        return [self.factors, self.number]

    def _multiply(self, batch: Batch) -> tuple[Any, Any]:
        product = tf.linalg.matmul(batch["values"], self.factors)
        self.factors.assign_add(0.0 * product[0, 0] * self.factors)
        return self.number.assign_add(1.0) + 0.0 * product[0, 0], product[0, 1]


class _WithoutNccl(tf.distribute.MirroredStrategy):
    def __init__(self, devices: list[str]) -> None:
        super().__init__(devices, tf.distribute.ReductionToOneDevice())


class OneProductEach(PlacedTrainer):
    """Multiplies each replica's part of a batch with weights that stay; the replicas' numbers meet without NCCL."""

    def __init__(self, replicas: int) -> None:
        with mock.patch.object(tf.distribute, "MirroredStrategy", _WithoutNccl):
            super().__init__(place(replicas, is_gpu=True), self._multiply, self._multiply)

    def weights(self) -> list[Any]:
        return []

    def _multiply(self, batch: Batch) -> tuple[Any, Any]:
        product = tf.linalg.matmul(batch["values"], tf.ones([SIDE, SIDE]))
        return product[0, 0], product[0, 1]


def _batches(on_device: bool) -> Any:
    ids = tf.data.Dataset.range(1_000).batch(EXAMPLES)
    payload = tf.zeros([EXAMPLES, SIDE], tf.uint8)
    batches = ids.map(lambda each: {"id": each, "values": tf.ones([EXAMPLES, SIDE]), "payload": payload})
    if on_device:
        return batches.apply(tf.data.experimental.prefetch_to_device("/GPU:0", 2))
    return batches.prefetch(2)


def train(
    folder: str, options: str, on_device: bool = False, is_synthetic: bool = False, is_mirrored: bool = False
) -> str:
    """Train on the GPU as a job does, one product a step or the synthetic workload; return the folder of the run."""
    job = make_job(Path(folder), read_options(options))
    training = job.options.training
    if is_mirrored:
        trainer: Trainer = OneProductEach(2)
    else:
        trainer = make_trainer(job.options, is_gpu=True) if is_synthetic else OneProduct()
    recorder = StepRecorder(job, trainer, is_asynchronous=True, has_ids=True)
    windows = StepWindows(
        job.options.profiling, WindowRecorder(job.folder, TensorFlowProfiler(), job.log, job.clock), job.log
    )
    checkpoints = CheckpointWriter(trainer, job.folder.scratch, training.checkpoint_every, job.log, job.clock)
    evaluation = EvaluationPasses(job, trainer, lambda: _batches(on_device), None, 0, is_asynchronous=True)
    course = Course(job, windows, recorder, mark_step, checkpoints.after_steps, evaluation.run)
    steps = make_steps(job, trainer, is_asynchronous=True)
    make_loop(job, trainer, steps, course).run(trainer.distribute(_batches(on_device)), lambda _: None)
    windows.finish()
    recorder.close()
    return str(job.folder.path)


def run_block(folder: str, options: str, steps: int) -> dict[str, Any]:
    """Run a block of an arm of a race; return the folder of the run, and when the block began and ended, ns."""
    job, trainer = make_job(Path(folder), read_options(options)), OneProduct()
    recorder, batches = StepRecorder(job, trainer, is_asynchronous=True, has_ids=True), iter(_batches(on_device=False))
    arm = Arm(job, trainer, PythonSteps(trainer, job.clock), recorder, batches, Buffers(batches))
    next(batches)  # of a pipeline that has not run yet nothing is known
    block = arm.run_block(steps, LoadMeter(Gpu()))
    recorder.close()
    return {"folder": str(job.folder.path), "start_ns": block.start_ns, "end_ns": block.start_ns + block.wall_ns}


def fit(folder: str, options: str) -> dict[str, Any]:
    """Train by Keras' ``fit``; return the folder of the run, and when the row of each step was written, ns."""
    written: list[int] = []
    record = StepRecorder.record

    def note_and_record(self: StepRecorder, *arguments: Any) -> None:
        written.append(time.time_ns())
        record(self, *arguments)

    with mock.patch.object(StepRecorder, "record", note_and_record):
        return {"folder": train(folder, options), "written_ns": written}


def time_steps() -> float:
    """Return what calibration says of the step, ns."""
    trainer = OneProduct()
    batch = next(iter(_batches(on_device=False)))
    return time_step(trainer, PythonSteps(trainer, Clock()), batch, is_asynchronous=True).step_ns


def read_while_working() -> dict[str, list[bool]]:
    """Launch four steps and say, when the first one's result or batch is read, whether the last one's is."""
    trainer, reader, read = OneProduct(), ResultReader(OneProduct(), Clock()), {}
    batch = next(iter(_batches(on_device=True)))
    for part in ("result", "batch", "result", "batch"):  # the first of each traces the copy
        pending = []
        for _ in range(4):
            result = trainer.step(batch)
            pending.append(
                reader.request(result)
                if part == "result"
                else reader.beside(lambda each: each["id"].numpy(), {"id": tf.cast(result[0], tf.int64)})
            )
        pending[0].result()
        time.sleep(0.1)  # for the others, if they have arrived too
        read[part] = [pending[0].done(), pending[-1].done()]
        for each in pending:
            each.result()
    reader.close()
    return read


def products_in_windows(store: str) -> list[int]:
    """Record windows of two steps in a loop that never waits for the device; return the products in each."""
    trainer, batches = OneProduct(), _batches(on_device=False)
    with ProfileWindows(store, steps_per_window=2, every_steps=4, warmup_steps=2, max_cost_percent=None) as windows:
        for batch in windows.steps(itertools.islice(batches, 9)):
            trainer.step(batch)
    traces = sorted(windows.run.path.rglob("*.xplane.pb"))
    return [_names(trace).count("MatMul_kernel") for trace in traces]


def _names(trace: Path) -> list[str]:
    space = xplane_pb2.XSpace.FromString(trace.read_bytes())
    return [
        plane.event_metadata[event.metadata_id].name
        for plane in space.planes
        if plane.name.startswith("/device")
        for line in plane.lines
        for event in line.events
    ]


def use_devices() -> list[bool]:
    """Say whether devices are in use: at first, after a profiler's settling, and after the first op."""
    from pipeline_lab.capture.shared_profiler import SharedProfiler

    note_new_sessions()
    said = [are_devices_in_use()]
    SharedProfiler().settle()
    said.append(are_devices_in_use())
    tf.zeros([1])
    return [*said, are_devices_in_use()]
