"""How close we come to a loop that never waits for us, on a device that works beside the host.

    python -m benchmarks.device_loop [--rows NAME …] [--pairs N] [--steps N] [--python-ms MS]

Blocks of a bare loop and of ours take turns in one process, in an order drawn by chance:

- ``host``, ``device``: a loop that never reads a result, with batches on the host or on the device; our training loop.
- ``graph``: a loop in a ``tf.function`` that never reads a result, called from Python; our loop in a graph.
- ``keras``: ``fit`` with nothing of ours (Keras 3.15 on TensorFlow reads the results of every step); our loop by ``fit``.
- ``race``: a loop that never reads a result; the blocks of an arm of a race.
- ``calibration``: a loop on one batch that never reads a result and does nothing else; the calibration of the step.
- ``fit-windows``, ``loop-windows``: ``fit`` and a loop that never reads a result; the same with ``ProfileWindows``, between
  windows.

Without a GPU, run it on the pretend one: ``eval "$(python -m tests.pretend_gpu op_us=MatMul=20000)"`` gives it a step of 20 ms.
There it also counts the copies to the host, for each of which something waits.
"""

import argparse
import contextlib
import ctypes
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from scipy.stats import binom

from pipeline_lab.capture import ProfileWindows
from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.run_options import RunOptions, set_options
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.machine.nvidia import Gpu
from pipeline_lab.runs.store import RunStore
from pipeline_lab.statistics.schedule import draw_order
from pipeline_lab.units import NS_PER_S
from pipeline_lab.worker.calibrate import time_step
from pipeline_lab.worker.job_context import Job, StopRequest
from pipeline_lab.worker.note.event_log import Clock, EventLog
from pipeline_lab.worker.prepare.device import present_device
from pipeline_lab.worker.race.blocks import Arm, LoadMeter
from pipeline_lab.worker.race.buffers import Buffers
from pipeline_lab.worker.record.profiler import TensorFlowProfiler, mark_step
from pipeline_lab.worker.record.step_recorder import StepRecorder
from pipeline_lab.worker.record.step_windows import StepWindows
from pipeline_lab.worker.record.window_recorder import WindowRecorder
from pipeline_lab.worker.train.course import Course
from pipeline_lab.worker.train.loops import make_loop, make_steps
from pipeline_lab.worker.train.placement import PlacedTrainer, place
from pipeline_lab.worker.train.training_steps import Batch, PythonSteps

SIDE = 256
WARMUP = 10
STEPS_PER_CALL = 10
"""Of the loops in a graph."""
LOOP, WINDOWS = 1.03, 1.01
"""Goals: ours over the bare loop."""
NO_WINDOW = 10**9


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


class Stopwatch:
    """Times the steps from the end of the warm-up to when the device has ended the last one."""

    def __init__(self, steps: int) -> None:
        self._steps, self._begun_s, self.step_s = steps, 0.0, 0.0

    def before(self, step: int) -> None:
        if step == WARMUP:
            wait_for_device()
            self._begun_s = time.perf_counter()

    def after(self, step: int) -> None:
        if step == WARMUP + self._steps - 1:
            wait_for_device()
            self.step_s = (time.perf_counter() - self._begun_s) / self._steps


def wait_for_device() -> None:
    tf.test.experimental.sync_devices()


class Loops:
    """The loops; each takes the warm-up and its steps, and returns the time of a step, s."""

    def __init__(self, steps: int, python_ms: float) -> None:
        self._steps, self._python_s, self._trainer = steps, python_ms / 1e3, OneProduct()
        self._settings = [
            ("training.steps", str(steps)),
            ("training.warmup_steps", str(WARMUP)),
            ("profiling.enabled", "false"),
            ("workload.python_ms", str(python_ms)),
        ]
        self._stack = contextlib.ExitStack()
        self._arm: Arm | None = None
        self._take_in_graph = tf.function(self._take)

    # bare

    def never_reading(self, *, on_device: bool = False) -> float:
        return self._train(itertools.islice(_batches(on_device), WARMUP + self._steps))

    def in_graph(self) -> float:
        watch, batches = Stopwatch(self._steps), iter(_batches())
        for first in range(0, WARMUP + self._steps, STEPS_PER_CALL):
            watch.before(first)
            self._take_in_graph(batches)
            watch.after(first + STEPS_PER_CALL - 1)
            self._pause()
        return watch.step_s

    def fit(self, *callbacks: Any) -> float:
        model, watch = _Model(self._trainer), Stopwatch(self._steps)
        model.compile(optimizer=None, jit_compile=False)
        calls = [_Watched(watch), *callbacks, _Paused(self._pause)]
        model.fit(_batches(), steps_per_epoch=WARMUP + self._steps, verbose=0, callbacks=calls)
        return watch.step_s

    def on_one_batch(self) -> float:
        batch, watch = self._held(), Stopwatch(self._steps)
        for step in range(WARMUP + self._steps):
            watch.before(step)
            self._trainer.step(batch)
            watch.after(step)
        return watch.step_s

    # ours

    def training_loop(self, *settings: tuple[str, str], on_device: bool = False) -> float:
        """Train as a job does, rows and samples written."""
        watch = Stopwatch(self._steps)

        def mark(step: int) -> Any:
            if step == WARMUP:
                recorder.catch_up()
            watch.before(step)
            return mark_step(step)

        def after_steps(_first: int, last: int) -> None:
            if last == WARMUP + self._steps - 1:
                recorder.catch_up()
            watch.after(last)

        with self._job(*settings) as (job, recorder):
            recorded = WindowRecorder(job.folder, TensorFlowProfiler(), job.log, job.clock)
            windows = StepWindows(job.options.profiling, recorded, job.log)
            course = Course(job, windows, recorder, mark, after_steps)
            loop = make_loop(job, self._trainer, make_steps(job, self._trainer, is_asynchronous=True), course)
            loop.run(_batches(on_device), lambda _: None)
            windows.finish()
        return watch.step_s

    def race_arm(self) -> float:
        if self._arm is None:
            job, recorder = self._stack.enter_context(self._job())
            batches = iter(_batches())
            steps = PythonSteps(self._trainer, job.clock)
            self._arm = Arm(job, self._trainer, steps, recorder, batches, Buffers(batches))
            self._arm.warm_up(0, 10.0)
        block = self._arm.run_block(self._steps, LoadMeter(Gpu()))
        self._arm.rest()
        return block.wall_ns / block.steps / NS_PER_S

    def calibration(self) -> float:
        steps = PythonSteps(self._trainer, Clock())
        return time_step(self._trainer, steps, self._held(), is_asynchronous=True).step_ns / NS_PER_S

    def fit_with_windows(self) -> float:
        with tempfile.TemporaryDirectory() as store:
            return self.fit(ProfileWindows(store, warmup_steps=NO_WINDOW))

    def loop_with_windows(self) -> float:
        with tempfile.TemporaryDirectory() as store, ProfileWindows(store, warmup_steps=NO_WINDOW) as windows:
            return self._train(windows.steps(itertools.islice(_batches(), WARMUP + self._steps)))

    def close(self) -> None:
        self._stack.close()

    def _train(self, batches: Iterable[Any]) -> float:
        watch = Stopwatch(self._steps)
        for step, batch in enumerate(batches):
            watch.before(step)
            self._trainer.step(batch)
            watch.after(step)
            self._pause()
        return watch.step_s

    def _take(self, batches: Any) -> None:
        for _ in tf.range(STEPS_PER_CALL):
            self._trainer.step(batches.get_next())

    def _pause(self) -> None:
        time.sleep(self._python_s)

    def _held(self) -> Any:
        return present_device().hold(next(iter(_batches())))

    @contextlib.contextmanager
    def _job(self, *settings: tuple[str, str]) -> Iterator[tuple[Job, StepRecorder]]:
        options: RunOptions = set_options(find_preset("synthetic").options, [*self._settings, *settings])
        with tempfile.TemporaryDirectory() as root:
            folder = RunStore(Path(root)).create(options, render_source(options))
            job = Job(folder, options, EventLog(folder.events), StopRequest(), Clock())
            with contextlib.closing(StepRecorder(job, self._trainer, is_asynchronous=True, has_ids=True)) as recorder:
                yield job, recorder


def _batches(on_device: bool = False) -> Any:
    ids, values = tf.data.Dataset.range(10**9).batch(32), tf.zeros([SIDE, SIDE])
    batches = ids.map(lambda each: {"id": each, "values": values})
    return batches.apply(tf.data.experimental.prefetch_to_device("/GPU:0", 2)) if on_device else batches.prefetch(2)


class _Model(keras.Model):
    def __init__(self, trainer: OneProduct) -> None:
        super().__init__()
        self._product = trainer
        self.built = True

    def train_step(self, data: Any) -> dict[str, Any]:
        loss, accuracy = self._product.step(data)
        return {"loss": loss, "accuracy": accuracy}


class _Watched(keras.callbacks.Callback):
    def __init__(self, watch: Stopwatch) -> None:
        super().__init__()
        self._watch = watch

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        del logs
        self._watch.before(batch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        del logs
        self._watch.after(batch)


class _Paused(keras.callbacks.Callback):
    def __init__(self, pause: Callable[[], None]) -> None:
        super().__init__()
        self._pause = pause

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        del batch, logs
        self._pause()


@dataclass(frozen=True)
class Row:
    """A bare loop, ours, and how much longer ours may take."""

    bare: Callable[[], float]
    ours: Callable[[], float]
    goal: float = LOOP


def make_rows(loops: Loops) -> dict[str, Row]:
    graph = (("training.loop", "in_graph"), ("training.steps_per_call", str(STEPS_PER_CALL)))
    return {
        "host": Row(loops.never_reading, loops.training_loop),
        "device": Row(lambda: loops.never_reading(on_device=True), lambda: loops.training_loop(on_device=True)),
        "graph": Row(loops.in_graph, lambda: loops.training_loop(*graph)),
        "keras": Row(loops.fit, lambda: loops.training_loop(("training.loop", "keras_fit"))),
        "race": Row(loops.never_reading, loops.race_arm),
        "calibration": Row(loops.on_one_batch, loops.calibration),
        "fit-windows": Row(loops.fit, loops.fit_with_windows, WINDOWS),
        "loop-windows": Row(loops.never_reading, loops.loop_with_windows, WINDOWS),
    }


def count_copies() -> int | None:
    """Return the copies to the host so far; None but on the pretend GPU."""
    library = os.environ.get("TF_PLUGGABLE_DEVICE_LIBRARY_PATH")
    count = getattr(ctypes.CDLL(library), "PretendGpuCopiesToHost", None) if library else None
    if count is None:
        return None
    count.restype = ctypes.c_int64
    return int(count())


def measure(row: Row, pairs: int) -> tuple[list[float], list[float], list[int]]:
    """Return the times of a step, s, of the bare loop and of ours, and the copies to the host of all blocks of each."""
    seconds: tuple[list[float], list[float]] = ([], [])
    copies = [0, 0]
    for number in range(-1, pairs):  # in the first pair functions are traced
        for arm in draw_order(2, max(0, number), seed=0):
            before = count_copies() or 0
            found = (row.bare, row.ours)[arm]()
            if number >= 0:
                seconds[arm].append(found)
                copies[arm] += (count_copies() or 0) - before
    return *seconds, copies


def tell(name: str, row: Row, pairs: int, steps: int) -> None:
    bare_s, ours_s, copies = measure(row, pairs)
    ratios = np.sort(np.array(ours_s) / np.array(bare_s))
    outside = int(binom.ppf(0.025, pairs, 0.5))  # order statistics enclose the median in 95 % of all cases
    low, middle, high = ratios[max(0, outside - 1)], np.median(ratios), ratios[min(pairs - 1, pairs - outside)]
    verdict = "within" if high <= row.goal else "BEYOND" if low > row.goal else "too noisy for"
    per_step = [f"{count / pairs / (WARMUP + steps):.1f}" for count in copies]
    counted = "" if count_copies() is None else f"; copies to the host per step {per_step[0]} and {per_step[1]}"
    print(
        f"{name:12} bare {1e3 * np.median(bare_s):6.2f} ms a step, ours {1e3 * np.median(ours_s):6.2f} ms, "
        f"ratio {middle:.4f} ({low:.4f} to {high:.4f}): {verdict} {row.goal:g}{counted}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", help="some of the rows")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--steps", type=int, default=40, help=f"of a block; whole calls of {STEPS_PER_CALL}")
    parser.add_argument("--python-ms", type=float, default=10.0)
    chosen = parser.parse_args()
    steps = STEPS_PER_CALL * max(1, round(chosen.steps / STEPS_PER_CALL))
    with contextlib.closing(Loops(steps, chosen.python_ms)) as loops:
        for name, row in make_rows(loops).items():
            if not chosen.rows or name in chosen.rows:
                tell(name, row, chosen.pairs, steps)


if __name__ == "__main__":
    main()
