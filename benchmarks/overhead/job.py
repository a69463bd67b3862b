"""A training job that is not ours, as people write them: ``python -m benchmarks.overhead.job keras|loop``.

It trains a small network on augmented noise images, several milliseconds per step on a few cores, and prints what it
saw as one line of JSON. Keras' ``fit`` calls the steps, or a loop around a ``tf.function`` does.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import keras
import numpy as np
import tensorflow as tf

from pipeline_lab.capture import ProfileWindows
from pipeline_lab.capture.recording import Recording
from pipeline_lab.capture.watch_script import LookBack, Watcher
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_events import WindowEvent, read_events
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import open_store
from pipeline_lab.statistics.schedule import draw_order

BATCH, EXAMPLES = 64, 4096
LEAD_STEPS = 20
"""Steps at the start of a block that do not count."""
IDLE_S = (9.0, 13.0)
"""Since ``watch`` began: between its second window, after six seconds, and its third, after fourteen."""
EMPTY_STEPS = 20_000


class Course(Protocol):
    """What happens around each step, and when the training is over."""

    is_over: bool

    def before(self) -> None: ...

    def after(self) -> None: ...

    def result(self) -> dict[str, Any]: ...


class Counted:
    """Takes this number of steps, for what they leave in memory."""

    def __init__(self, steps: int) -> None:
        self._left, self._steps, self.is_over = steps, steps, False

    def before(self) -> None: ...

    def after(self) -> None:
        self._left -= 1
        self.is_over = self._left <= 0

    def result(self) -> dict[str, Any]:
        return {"steps": self._steps}


class Recorder(Protocol):
    """What records a block, from before its first step to after its last."""

    def before(self, step: int) -> None: ...

    def after(self, step: int) -> None: ...

    def end(self) -> list[WindowEvent]:
        """Write all; return the windows."""
        ...


class ByStep:
    """``ProfileWindows``, called as Keras calls it."""

    def __init__(self, store: str, first_step: int = LEAD_STEPS) -> None:
        self._windows = ProfileWindows(store, warmup_steps=first_step)
        self._windows.on_train_begin()
        self.before, self.after = self._windows.on_train_batch_begin, self._windows.on_train_batch_end

    def end(self) -> list[WindowEvent]:
        self._windows.on_train_end()
        return windows_of(self._windows.run)


class ByClock:
    """What ``watch`` runs beside a script; its first window opens after two seconds, the next ones four and eight later."""

    def __init__(self, store: str, first_step: int = LEAD_STEPS) -> None:
        del first_step
        self._recording = Recording(open_store(Path(store)), "overhead", tags=())
        afterwards = LookBack(self._recording, calibrates=None, samples=False)
        self._watcher = Watcher(self._recording, Path.cwd(), every_s=20.0, length_s=1.0, keep=afterwards.keep)

    def before(self, step: int) -> None: ...

    def after(self, step: int) -> None: ...

    def end(self) -> list[WindowEvent]:
        self._watcher.finish()
        self._recording.end(RunState.DONE)
        return windows_of(self._recording.folder)


RECORDERS: dict[str, Callable[..., Recorder]] = {"windows": ByStep, "watch": ByClock}


class Blocks:
    """Lets blocks of steps with and without a recorder take turns, in an order drawn for each pair.

    A block's windows have a run of their own, begun before it and ended after it: neither is part of its time, the
    windows and their flushing are.
    """

    def __init__(self, make: Callable[[], Recorder], pairs: int, block_steps: int) -> None:
        self._make, self._block_steps, self.is_over = make, block_steps, False
        orders = [draw_order(2, number, seed=0) for number in range(pairs)]
        self._arms = iter([bool(arm) for order in orders for arm in order])
        self._seconds: dict[bool, list[float]] = {False: [], True: []}
        self._recorder: Recorder | None = None
        self._windows = self._late_windows = 0
        self._begin(next(self._arms))

    def before(self) -> None:
        if self._step == LEAD_STEPS:
            self._begun_s = time.perf_counter()
        if self._recorder is not None:
            self._recorder.before(self._step)

    def after(self) -> None:
        if self._recorder is not None:
            self._recorder.after(self._step)
        self._step += 1
        if self._step < LEAD_STEPS + self._block_steps:
            return
        self._seconds[self._recorder is not None].append(time.perf_counter() - self._begun_s)
        if self._recorder is not None:
            ended_ns = time.time_ns()
            windows = self._recorder.end()
            self._windows += len(windows)
            self._late_windows += sum(window.flushed_ns > ended_ns for window in windows)
        following = next(self._arms, None)
        self.is_over = following is None
        if following is not None:
            self._begin(following)

    def result(self) -> dict[str, Any]:
        return {
            "plain_s": self._seconds[False],
            "recorded_s": self._seconds[True],
            "windows": self._windows,
            "late_windows": self._late_windows,
        }

    def _begin(self, is_recorded: bool) -> None:
        self._step = 0
        self._recorder = self._make() if is_recorded else None


def windows_of(folder: RunFolder) -> list[WindowEvent]:
    return [event for event in read_events(folder.events) if isinstance(event, WindowEvent)]


def cost_between_windows(make: Callable[..., Recorder]) -> dict[str, float]:
    """Return what a recorder takes while no window is open: of a core beside steps that never come, and for each step."""
    recorder = make(first_step=10**9)
    time.sleep(IDLE_S[0])
    begun_s, begun_cpu_s = time.perf_counter(), time.process_time()
    time.sleep(IDLE_S[1] - IDLE_S[0])
    share = (time.process_time() - begun_cpu_s) / (time.perf_counter() - begun_s)
    begun_s = time.perf_counter()
    for step in range(EMPTY_STEPS):
        recorder.before(step)
        recorder.after(step)
    step_s = (time.perf_counter() - begun_s) / EMPTY_STEPS
    recorder.end()
    return {"idle_share": share, "step_s": step_s}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["keras", "loop"])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--windows", action="store_true", help="record with ProfileWindows, as documented")
    parser.add_argument("--pairs", type=int, help="blocks with and without a recorder instead")
    parser.add_argument("--recorder", choices=RECORDERS, default="windows")
    parser.add_argument("--idle", action="store_true", help="train nothing; what a recorder takes between its windows")
    parser.add_argument("--block", type=int, default=400, help="steps of a block")
    parser.add_argument("--store", default="")
    chosen = parser.parse_args()
    make = partial(RECORDERS[chosen.recorder], chosen.store)
    if chosen.idle:
        print(json.dumps(cost_between_windows(make)))
        return
    keras.utils.set_random_seed(0)
    course: Course = Blocks(make, chosen.pairs, chosen.block) if chosen.pairs else Counted(chosen.steps)
    windows = ProfileWindows(chosen.store) if chosen.windows else None
    begun_s = time.perf_counter()
    (train_by_fit if chosen.kind == "keras" else train_by_loop)(course, windows)
    found = {"seconds": time.perf_counter() - begun_s, "windows": len(windows_of(windows.run)) if windows else 0}
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({**found, **course.result(), "peak_bytes": peak_bytes}))


def train_by_fit(course: Course, windows: ProfileWindows | None) -> None:
    class Steps(keras.callbacks.Callback):
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

    @tf.function
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
