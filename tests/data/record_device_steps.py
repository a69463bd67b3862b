"""Record how loops of different kinds feed a device: python record_device_steps.py FOLDER [NAME …].

Runs on the pretend GPU of the tests (docs/gpu.md), on which every matrix product takes 10 ms, so that a step takes 20 ms
of the device whatever the loop does: TF_PLUGGABLE_DEVICE_LIBRARY_PATH names its library, and its own variables the times
and, for ``two_devices``, the number of devices.
"""

import gzip
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

WIDTH, STEPS, PRODUCTS = 32, 4, 2
OPTIONS = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
Source = Callable[[], Iterable[Any]]


def make_step() -> Callable[[tf.Tensor], tf.Tensor]:
    weights = tf.Variable(tf.ones((WIDTH, WIDTH)) / WIDTH)

    @tf.function
    def step(batch: tf.Tensor) -> tf.Tensor:
        for _ in range(PRODUCTS):
            batch = tf.matmul(batch, weights)
        return batch[0, 0]

    return step


def batches() -> tf.data.Dataset:
    return tf.data.Dataset.range(1000).map(lambda i: tf.fill((8, WIDTH), tf.cast(i, tf.float32))).prefetch(2)


def on_device() -> Iterator[tf.Tensor]:
    """Yield one batch again and again that the device holds."""
    with tf.device("/GPU:0"):
        held = tf.identity(tf.ones((8, WIDTH)))
    while True:
        yield held


def copied_ahead() -> tf.data.Dataset:
    return batches().apply(tf.data.experimental.prefetch_to_device("/GPU:0", 2))


def slowly_made() -> tf.data.Dataset:
    def wait(batch: tf.Tensor) -> tf.Tensor:
        time.sleep(0.03)
        return batch

    made = batches().map(lambda batch: tf.numpy_function(wait, [batch], tf.float32)).prefetch(2)
    return made.map(lambda batch: tf.ensure_shape(batch, (8, WIDTH)))


def finish() -> None:
    """Wait for all that the devices were given."""
    tf.test.experimental.sync_devices()


step = make_step()


def marked(number: int) -> AbstractContextManager[object]:
    return tf.profiler.experimental.Trace("train", step_num=number, _r=1)


def reads(batch: Iterator[Any], steps: int, pause_s: float = 0.0) -> None:
    for number in range(steps):
        with marked(number + 10):
            float(step(next(batch)))
        time.sleep(pause_s)


def reads_one_behind(batch: Iterator[Any], steps: int) -> None:
    last = None
    for number in range(steps):
        with marked(number + 10):
            result = step(next(batch))
            if last is not None:
                float(last)
            last = result


def never_reads(batch: Iterator[Any], steps: int, pause_s: float = 0.0, mark: Any = marked) -> None:
    for number in range(steps):
        with mark(number + 10):
            step(next(batch))
        time.sleep(pause_s)


def record(folder: Path, name: str, loop: Callable[[], None]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        tf.profiler.experimental.start(scratch, options=OPTIONS)
        loop()
        tf.profiler.experimental.stop()
        finish()
        (found,) = Path(scratch).rglob("*.xplane.pb")
        (folder / f"{name}.xplane.pb.gz").write_bytes(gzip.compress(found.read_bytes(), mtime=0))


def looping(
    loop: Callable[..., None], source: Source, ends: bool = True, ahead: int = 0, steps: int = STEPS, **more: Any
) -> Any:
    """Return what records a loop: after two steps that compile, with devices idle or some steps behind."""

    def run(folder: Path, name: str) -> None:
        batch = iter(source())
        reads(batch, 2)
        never_reads(batch, ahead)

        def recorded() -> None:
            loop(batch, steps, **more)
            if ends:
                finish()

        record(folder, name, recorded)

    return run


def keras_fit(folder: Path, name: str, executions: int = 1) -> None:
    model = keras.Sequential([keras.layers.Input((WIDTH,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=executions, jit_compile=False)
    data = batches().map(lambda batch: (batch, batch[:, :1]))
    model.fit(data, steps_per_epoch=executions, verbose=0)
    record(folder, name, lambda: model.fit(data, steps_per_epoch=3 * executions, verbose=0))


def two_devices(folder: Path, name: str) -> None:
    strategy = tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.ReductionToOneDevice())
    with strategy.scope():
        step_of_each = make_step()
    source = strategy.experimental_distribute_dataset(batches())
    run = tf.function(lambda batch: strategy.run(step_of_each, args=(batch,)))
    batch = iter(source)
    run(next(batch))
    finish()

    def loop() -> None:
        for number in range(STEPS):
            with marked(number + 10):
                run(next(batch))
        finish()

    record(folder, name, loop)


CASES: dict[str, Callable[[Path, str], None]] = {
    "reads_each": looping(reads, batches),
    "reads_each_python_between": looping(reads, batches, pause_s=0.02),
    "reads_each_slow_map": looping(reads, slowly_made),
    "reads_one_behind": looping(reads_one_behind, batches),
    "never_reads": looping(never_reads, on_device),
    "never_reads_unmarked": looping(never_reads, batches, mark=lambda _: nullcontext()),
    "never_reads_cut": looping(never_reads, on_device, ends=False, steps=12, pause_s=0.005),
    "never_reads_far_ahead": looping(never_reads, on_device, ends=False, ahead=10),
    "prefetch_to_device": looping(never_reads, copied_ahead),
    "keras_fit": keras_fit,
    "keras_fit_4_per_execution": lambda folder, name: keras_fit(folder, name, 4),
    "two_devices": two_devices,
}

if __name__ == "__main__":
    for case in sys.argv[2:] or CASES:
        CASES[case](Path(sys.argv[1]), case)
