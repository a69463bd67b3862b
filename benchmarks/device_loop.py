"""How close the training loop comes to one that never reads a result, on a device that works beside the host.

    python -m benchmarks.device_loop [--pairs N] [--steps N] [--python-ms MS]

Blocks of both loops in turn, with batches on the host and with batches that are prefetched to the device. Without a GPU, run it on
the pretend one: ``eval "$(python -m tests.pretend_gpu op_us=MatMul=20000)"`` gives it a step of 20 ms.
"""

import argparse
import contextlib
import itertools
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import tensorflow as tf

from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.run_options import RunOptions, set_options
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.store import RunStore
from pipeline_lab.worker.job_context import Job, StopRequest
from pipeline_lab.worker.note.event_log import Clock, EventLog
from pipeline_lab.worker.record.profiler import TensorFlowProfiler, mark_step
from pipeline_lab.worker.record.step_recorder import StepRecorder
from pipeline_lab.worker.record.step_windows import StepWindows
from pipeline_lab.worker.record.window_recorder import WindowRecorder
from pipeline_lab.worker.train.course import Course, PlainLoop
from pipeline_lab.worker.train.placement import PlacedTrainer, place
from pipeline_lab.worker.train.training_steps import Batch, PythonSteps

SIDE = 256
WARMUP = 5


class OneProduct(PlacedTrainer):
    """A step with one large operation."""

    def __init__(self) -> None:
        self._factors = tf.Variable(tf.random.normal([SIDE, SIDE]))
        super().__init__(place(1, is_gpu=True), self._multiply, self._multiply)

    def weights(self) -> list[Any]:
        return [self._factors]

    def _multiply(self, batch: Batch) -> tuple[Any, Any]:
        product = tf.linalg.matmul(batch["values"], self._factors)
        self._factors.assign_add(1e-9 * product)
        return product[0, 0], product[0, 1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--python-ms", type=float, default=10.0)
    chosen = parser.parse_args()
    settings = [
        ("training.steps", str(chosen.steps)),
        ("training.warmup_steps", str(WARMUP)),
        ("profiling.enabled", "false"),
        ("workload.python_ms", str(chosen.python_ms)),
    ]
    options, trainer = set_options(find_preset("synthetic").options, settings), OneProduct()
    for name, data in (("on the host", _batches()), ("on the device", _batches().apply(_to_device()))):
        ratios, steps_ms = [], []
        for _ in range(chosen.pairs):
            never_s, ours_s = _never_reading(trainer, data, options), _training_loop(trainer, data, options)
            ratios.append(ours_s / never_s)
            steps_ms.append((1e3 * never_s / chosen.steps, 1e3 * ours_s / chosen.steps))
        never_ms, ours_ms = (statistics.median(column) for column in zip(*steps_ms, strict=True))
        print(
            f"batch {name}: never reading {never_ms:.2f} ms a step, training loop {ours_ms:.2f} ms, "
            f"ratio {statistics.median(ratios):.4f} ({min(ratios):.4f} to {max(ratios):.4f})"
        )


def _batches() -> Any:
    ids = tf.data.Dataset.range(10**9).batch(32)
    values = tf.zeros([SIDE, SIDE])
    return ids.map(lambda each: {"id": each, "values": values}).prefetch(2)


def _to_device() -> Any:
    return tf.data.experimental.prefetch_to_device("/GPU:0", 2)


def _never_reading(trainer: OneProduct, data: Any, options: RunOptions) -> float:
    batches, python_s = iter(data), options.workload.pause_ns / 1e9
    for batch in itertools.islice(batches, WARMUP):
        trainer.step(batch)
    tf.test.experimental.sync_devices()
    begun_s = time.perf_counter()
    for batch in itertools.islice(batches, options.training.steps):
        trainer.step(batch)
        time.sleep(python_s)
    tf.test.experimental.sync_devices()
    return time.perf_counter() - begun_s


def _training_loop(trainer: OneProduct, data: Any, options: RunOptions) -> float:
    """Train as a job does, rows and samples written; return the time from the end of the warm-up to the last result."""
    began_s: list[float] = []

    def after_steps(_first: int, last: int) -> None:
        if last == WARMUP - 1:
            recorder.catch_up()
            began_s.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as root:
        folder = RunStore(Path(root)).create(options, render_source(options))
        job = Job(folder, options, EventLog(folder.events), StopRequest(), Clock())
        windows = StepWindows(
            options.profiling, WindowRecorder(folder, TensorFlowProfiler(), job.log, job.clock), job.log
        )
        with contextlib.closing(StepRecorder(job, trainer, is_asynchronous=True, has_ids=True)) as recorder:
            course = Course(job, windows, recorder, mark_step, after_steps)
            PlainLoop(course, PythonSteps(trainer, job.clock)).run(data, lambda _: None)
            recorder.catch_up()
            elapsed_s = time.perf_counter() - began_s[0]
        windows.finish()
    return elapsed_s


if __name__ == "__main__":
    main()
