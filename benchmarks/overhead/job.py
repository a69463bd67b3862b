"""A training job that is not ours, as people write them: ``python -m benchmarks.overhead.job keras|loop``.

It trains a small network on augmented noise images, several milliseconds per step on a few cores, and prints what it
saw as one line of JSON. Keras' ``fit`` calls the steps, or a loop around a ``tf.function`` does.
"""

import argparse
import json
import resource
import time
from collections.abc import Iterator
from typing import Any, Protocol

import keras
import numpy as np
import tensorflow as tf

from pipeline_lab.capture import ProfileWindows
from pipeline_lab.statistics.schedule import draw_order

BATCH, EXAMPLES = 64, 4096
LEAD_STEPS = 20
"""Steps at the start of a block that do not count."""


class Course(Protocol):
    """What happens around each step, and when the training is over."""

    is_over: bool

    def before(self) -> None: ...

    def after(self) -> None: ...

    def result(self) -> dict[str, Any]: ...


class Steady:
    """Counts the steps of a stretch of time, after a lead that lets windows find their rhythm."""

    def __init__(self, lead_s: float, seconds: float) -> None:
        self._lead_s, self._seconds, self.is_over = lead_s, seconds, False
        self._begun_s = self._first_s = 0.0
        self._steps = self._all_steps = 0

    def before(self) -> None:
        self._begun_s = self._begun_s or time.perf_counter()

    def after(self) -> None:
        now_s = time.perf_counter()
        self._all_steps += 1
        if not self._first_s and now_s - self._begun_s >= self._lead_s:
            self._first_s, self._first_cpu_s = now_s, time.process_time()
        elif self._first_s:
            self._steps += 1
            self.is_over = now_s - self._first_s >= self._seconds
            self._last_s, self._last_cpu_s = now_s, time.process_time()

    def result(self) -> dict[str, Any]:
        return {
            "step_s": (self._last_s - self._first_s) / self._steps,
            "step_cpu_s": (self._last_cpu_s - self._first_cpu_s) / self._steps,
            "steps": self._all_steps,
        }


class Counted:
    """Takes so many steps, for what they leave in memory."""

    def __init__(self, steps: int) -> None:
        self._left, self._steps, self.is_over = steps, steps, False

    def before(self) -> None: ...

    def after(self) -> None:
        self._left -= 1
        self.is_over = self._left <= 0

    def result(self) -> dict[str, Any]:
        return {"steps": self._steps}


class Blocks:
    """Lets blocks of steps with and without windows take turns, in an order drawn for each pair.

    A block's windows have a run of their own, begun before it and ended after it: neither is part of its time, the
    windows and their flushing are.
    """

    def __init__(self, store: str, pairs: int, block_steps: int) -> None:
        self._store, self._block_steps, self.is_over = store, block_steps, False
        orders = [draw_order(2, number, seed=0) for number in range(pairs)]
        self._arms = iter([bool(arm) for order in orders for arm in order])
        self._seconds: dict[bool, list[float]] = {False: [], True: []}
        self._cpu_seconds: dict[bool, list[float]] = {False: [], True: []}
        self._windows: ProfileWindows | None = None
        self._begin(next(self._arms))

    def before(self) -> None:
        if self._step == LEAD_STEPS:
            self._begun_s, self._begun_cpu_s = time.perf_counter(), time.process_time()
        if self._windows is not None:
            self._windows.on_train_batch_begin(self._step)

    def after(self) -> None:
        if self._windows is not None:
            self._windows.on_train_batch_end(self._step)
        self._step += 1
        if self._step < LEAD_STEPS + self._block_steps:
            return
        self._seconds[self._has_windows].append(time.perf_counter() - self._begun_s)
        self._cpu_seconds[self._has_windows].append(time.process_time() - self._begun_cpu_s)
        if self._windows is not None:
            self._windows.on_train_end()
        following = next(self._arms, None)
        self.is_over = following is None
        if following is not None:
            self._begin(following)

    def result(self) -> dict[str, Any]:
        times, cpu_times = self._seconds, self._cpu_seconds
        return {
            "plain_s": times[False],
            "windows_s": times[True],
            "plain_cpu_s": cpu_times[False],
            "windows_cpu_s": cpu_times[True],
        }

    def _begin(self, has_windows: bool) -> None:
        self._has_windows, self._step = has_windows, 0
        self._windows = ProfileWindows(self._store, warmup_steps=LEAD_STEPS) if has_windows else None
        if self._windows is not None:
            self._windows.on_train_begin()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["keras", "loop"])
    parser.add_argument("--lead", type=float, default=30.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--steps", type=int, help="so many steps instead of a time")
    parser.add_argument("--windows", action="store_true", help="record with ProfileWindows, as documented")
    parser.add_argument("--pairs", type=int, help="blocks with and without windows instead")
    parser.add_argument("--block", type=int, default=400)
    parser.add_argument("--store", default="")
    chosen = parser.parse_args()
    keras.utils.set_random_seed(0)
    course: Course = Steady(chosen.lead, chosen.seconds)
    if chosen.pairs:
        course = Blocks(chosen.store, chosen.pairs, chosen.block)
    elif chosen.steps:
        course = Counted(chosen.steps)
    windows = ProfileWindows(chosen.store) if chosen.windows else None
    (train_by_fit if chosen.kind == "keras" else train_by_loop)(course, windows)
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({**course.result(), "peak_bytes": peak_bytes}))


def train_by_fit(course: Course, windows: ProfileWindows | None) -> None:
    class Steps(keras.callbacks.Callback):  # type: ignore[misc]  # Keras ships no types
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            del batch, logs
            course.before()

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            del batch, logs
            course.after()
            self.model.stop_training = course.is_over
            if course.is_over:
                raise StopIteration

    model = make_model()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    try:
        model.fit(
            make_dataset(), steps_per_epoch=10**6, verbose=0, callbacks=[*([windows] if windows else []), Steps()]
        )
    except StopIteration:  # in the middle of an epoch
        if windows is not None:
            windows.on_train_end()


def train_by_loop(course: Course, windows: ProfileWindows | None) -> None:
    model, optimizer = make_model(), keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow ships no types
    def step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images, training=True))
            loss = tf.reduce_mean(losses)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    def train(batches: Iterator[Any]) -> None:
        course.before()
        for images, labels in batches:
            step(images, labels).numpy()
            course.after()
            if course.is_over:
                return
            course.before()

    if windows is None:
        train(iter(make_dataset()))
        return
    with windows:
        train(windows.steps(make_dataset()))


def make_dataset() -> tf.data.Dataset:
    random = np.random.default_rng(0)
    images = random.random((EXAMPLES, 32, 32, 3), dtype=np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((images, random.integers(0, 10, EXAMPLES)))
    dataset = dataset.shuffle(EXAMPLES).repeat().map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.batch(BATCH, drop_remainder=True).prefetch(2)


def augment(image: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    padded = tf.pad(image, [[4, 4], [4, 4], [0, 0]])
    return tf.image.random_flip_left_right(tf.image.random_crop(padded, (32, 32, 3))), label


def make_model() -> Any:
    return keras.Sequential(
        [
            keras.layers.Input((32, 32, 3)),
            keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(10),
        ]
    )


if __name__ == "__main__":
    main()
