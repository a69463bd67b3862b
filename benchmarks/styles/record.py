"""Record one training style with TensorFlow: ``python -m benchmarks.styles.record STYLE FOLDER``.

Every style trains the same tiny model on batches that take 20 ms each to make and are made on demand, so that the wait
of a step is known: 20 ms for each batch it takes. MirroredStrategy alone prefetches, as it always does. What the style
really did is printed as one JSON line. The TensorBoard styles need the ``tensorboard`` package.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

WARMUP_STEPS = 2
BATCH_S = 0.020
BATCH, WIDTH = 8, 4
HOST = "sample-host"


class Taken(NamedTuple):
    """What was done while the profiler was on."""

    steps: int
    steps_per_execution: int = 1


Step = Callable[[Any, Any], Any]


def batches() -> Any:
    def make() -> Iterator[Any]:
        while True:
            time.sleep(BATCH_S)
            yield np.ones((BATCH, WIDTH), np.float32), np.ones((BATCH, 1), np.float32)

    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    signature = (tf.TensorSpec((BATCH, WIDTH)), tf.TensorSpec((BATCH, 1)))
    return tf.data.Dataset.from_generator(make, output_signature=signature).with_options(options)


def make_update() -> Step:
    """Return one training step on one batch, not yet a ``tf.function``."""
    weights = tf.Variable(tf.zeros((WIDTH, 1)))

    def update(features: Any, target: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(features @ weights - target))
        weights.assign_sub(1e-3 * tape.gradient(loss, weights))
        return loss

    return update


def record_loop(step: Step, iterator: Any, folder: str, *, steps: int, marked: bool = True) -> Taken:
    """Record a custom loop."""
    for _ in range(WARMUP_STEPS):
        step(*next(iterator))
    taken = 0
    with tf.profiler.experimental.Profile(folder):
        for number in range(WARMUP_STEPS, WARMUP_STEPS + steps):
            mark = tf.profiler.experimental.Trace("train", step_num=number, _r=1) if marked else nullcontext()
            with mark:
                float(step(*next(iterator)))
            taken += 1
    return Taken(taken)


def custom_loop(folder: str) -> Taken:
    return record_loop(tf.function(make_update()), iter(batches()), folder, steps=4)


def range_inside(folder: str) -> Taken:
    update = make_update()

    @tf.function
    def step(features: Any, target: Any) -> Any:
        loss = 0.0
        for _ in tf.range(3):
            loss = update(features, target)
        return loss

    return record_loop(step, iter(batches()), folder, steps=4)


def dataset_inside(folder: str) -> Taken:
    """One call of a function goes through five batches; it was traced before."""
    update, data = make_update(), batches().take(5)

    @tf.function
    def epoch(dataset: Any) -> Any:
        loss = 0.0
        for features, target in dataset:
            loss = update(features, target)
        return loss

    epoch(data)
    with tf.profiler.experimental.Profile(folder):
        float(epoch(data))
    return Taken(5)


def map_fn_inside(folder: str) -> Taken:
    update = make_update()

    @tf.function
    def step(features: Any, target: Any) -> Any:
        return update(tf.map_fn(lambda row: row * 2.0, features), target)

    return record_loop(step, iter(batches()), folder, steps=3)


def no_markers(folder: str) -> Taken:
    return record_loop(tf.function(make_update()), iter(batches()), folder, steps=5, marked=False)


def mirrored(folder: str, *, marked: bool = True) -> Taken:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        update = make_update()

    @tf.function
    def step(features: Any, target: Any) -> Any:
        return strategy.reduce("MEAN", strategy.run(update, args=(features, target)), axis=None)

    data = strategy.experimental_distribute_dataset(batches().unbatch().batch(BATCH))
    return record_loop(step, iter(data), folder, steps=4, marked=marked)


def mirrored_without_markers(folder: str) -> Taken:
    return mirrored(folder, marked=False)


class Window(tf.keras.callbacks.Callback):
    """Count the steps that the model takes in a window of executions, and profile it without markers if asked to.

    Args:
        folder: Where to profile to; None if another callback does.
    """

    def __init__(self, first: int, last: int, folder: str | None) -> None:
        super().__init__()
        self.first, self.last, self.folder = first, last, folder
        self.steps = self._execution = 0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        self._execution += 1
        if self._execution == self.first:
            self.steps = -int(self.model.optimizer.iterations)
            if self.folder:
                tf.profiler.experimental.start(self.folder)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        if self._execution == self.last:
            if self.folder:
                tf.profiler.experimental.stop()
            self.steps += int(self.model.optimizer.iterations)


def record_keras(folder: str, *, executions: int, steps_per_execution: int = 1, tensorboard: bool = True) -> Taken:
    """Profile some executions of ``fit``, after two others."""
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=steps_per_execution)
    first, last = WARMUP_STEPS + 1, WARMUP_STEPS + executions
    window = Window(first, last, None if tensorboard else folder)
    callbacks = [window]
    if tensorboard:
        callbacks.append(tf.keras.callbacks.TensorBoard(folder, profile_batch=(first, last), write_graph=False))
    model.fit(batches(), steps_per_epoch=(last + 1) * steps_per_execution, callbacks=callbacks, verbose=0)
    return Taken(window.steps, steps_per_execution)


def keras_tensorboard(folder: str) -> Taken:
    return record_keras(folder, executions=3)


def keras_tensorboard_4_per_execution(folder: str) -> Taken:
    return record_keras(folder, executions=3, steps_per_execution=4)


def keras_fit(folder: str) -> Taken:
    return record_keras(folder, executions=3, tensorboard=False)


def keras_fit_4_per_execution(folder: str) -> Taken:
    return record_keras(folder, executions=3, steps_per_execution=4, tensorboard=False)


def main(style: str, folder: str) -> None:
    taken: Taken = globals()[style](folder)
    (capture,) = Path(folder).rglob("*.xplane.pb")
    _rename_host(capture)
    print(json.dumps({"capture": str(capture), **taken._asdict(), "batch_ms": BATCH_S * 1e3}))


def _rename_host(capture: Path) -> None:
    """Take out the only thing that belongs to the machine."""
    space = xplane_pb2.XSpace.FromString(capture.read_bytes())
    space.hostnames[:] = [HOST]
    capture.write_bytes(space.SerializeToString())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
