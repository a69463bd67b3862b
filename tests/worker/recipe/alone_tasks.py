"""Steps and pipelines of scripts that are timed alone, in the process that has TensorFlow."""

import contextlib
import functools
import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import keras
import numpy as np
import tensorflow as tf

from pipeline_lab.capture import watched_calibration, watched_padding
from pipeline_lab.capture.script import (
    gradient_hooks,
    keras_hooks,
    live_iterators,
    noted_datasets,
    own_loops,
    step_hooks,
)
from pipeline_lab.runs.run_events import CalibrationEvent
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import PADDING, read_table
from pipeline_lab.worker.recipe import wrapping
from pipeline_lab.worker.recipe.notes import Ledger

BATCHES, BATCH = 6, 4
A_MOMENT_S = 0.05


@dataclass
class Recorded:
    """A recording that keeps what it is told."""

    notes: list[str] = field(default_factory=list)
    phases: list[str] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)

    @property
    def log(self) -> "Recorded":
        return self

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)

    def enter(self, phase: str) -> None:
        self.phases.append(phase)

    def write(self, event: Any) -> None:
        self.events.append(event)


class Doubled(keras.layers.Layer):
    """A layer that nobody could build again from its configuration; it draws at random, and looks up in a table."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function
        self.seeds = keras.random.SeedGenerator(1)
        ranks = tf.lookup.KeyValueTensorInitializer(tf.range(2), tf.constant([0.0, 0.0]))
        self.table = tf.lookup.StaticHashTable(ranks, 0.0)

    def call(self, x: Any) -> Any:
        nothing = self.table.lookup(tf.constant(1)) * keras.random.normal((1,), seed=self.seeds)
        return self.function(x) + nothing


def time_fit_alone(steps_per_execution: int = 1, run_eagerly: bool = False, prints: bool = False) -> dict[str, Any]:
    """Time the step of a model after its ``fit``; return what was written, and whether the model is as it was."""
    with patch.object(keras_hooks, "_kept", None):
        keras_hooks.hook_keras()
        keras_hooks.keep_last_fit(large_models=False)
        model = _fitted(
            steps_per_execution=steps_per_execution, run_eagerly=run_eagerly, loss=_told if prints else "mse"
        )
        before = [np.array(each) for each in (*model.variables, *model.optimizer.variables)]
        found = calibrated()
        after = [np.array(each) for each in (*model.variables, *model.optimizer.variables)]
        is_unchanged = all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    return {**found, "is_unchanged": is_unchanged}


def forget_fits() -> dict[str, Any]:
    """Return whether a fit is known, while its model lives and once it is gone: of a small and a large one, which is asked for or not."""
    known = {}
    for size, most_bytes in (("small", keras_hooks.SMALL_BYTES), ("large", 0)):
        for large_models in (False, True):
            with patch.object(keras_hooks, "_kept", None), patch.object(keras_hooks, "SMALL_BYTES", most_bytes):
                keras_hooks.hook_keras()
                keras_hooks.keep_last_fit(large_models=large_models)
                model = _fitted()
                known[f"alive, {size}, {large_models}"] = keras_hooks.last_fit() is not None
                del model
                keras.backend.clear_session()
                gc.collect()
                known[f"gone, {size}, {large_models}"] = keras_hooks.last_fit() is not None
    return known


def note_padding(folder: str) -> dict[str, list[list[int]]]:
    """Return the padding that was written of datasets, by how their batches are made: examples, elements and padding of each."""
    noted_datasets.note_new_datasets()
    rows = tf.ragged.constant([[1, 2, 3], [4], [5, 0, 6, 7], [0, 8]])
    made = tf.data.Dataset.from_tensor_slices(rows).map(tf.convert_to_tensor).map(lambda row: (row, 1.0))
    empty = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[], []], dtype=tf.int32)).map(tf.convert_to_tensor)
    given = {
        "without anything in it": empty.padded_batch(2),
        "padded": made.padded_batch(2),
        "padded, then mapped": made.padded_batch(2).map(lambda row, label: (tf.one_hot(row, 9)[..., 1:], label)),
        "by length": made.bucket_by_sequence_length(lambda row, _: tf.shape(row)[0], [3], [2, 2]),
        "to a length": made.padded_batch(2, padded_shapes=([5], [])),
        "with another value": made.padded_batch(2, padding_values=(-1, 0.0)),
        "of one length": tf.data.Dataset.from_tensor_slices(np.ones((4, 3))).batch(2),
    }
    found = {}
    for name, dataset in given.items():
        run = RunFolder(Path(folder) / name)
        run.path.mkdir()
        watched_padding.note_padding(SimpleNamespace(own=run), dataset)
        columns = read_table(run.padding, PADDING).select(["examples", "elements", "padding"])
        found[name] = [list(row.values()) for row in columns.to_pylist()]
    return found


def name_fits_to_time() -> dict[str, bool]:
    """Return which fits are timed although nobody asked, by what they are given."""
    noted_datasets.note_new_datasets()
    x = np.ones((8, 3), np.float32)

    def numbers() -> Any:
        for each in x:
            yield each, each[:1]

    specs = (tf.TensorSpec((3,), tf.float32), tf.TensorSpec((1,), tf.float32))
    made = tf.data.Dataset.from_generator(numbers, output_signature=specs).batch(2)
    given = {
        "arrays": lambda model: model.fit(x, x[:, :1], batch_size=2, verbose=0),
        "a dataset": lambda model: model.fit(_pairs(), verbose=0),
        "Python in a map": lambda model: model.fit(_pairs(python=True), verbose=0),
        "a generator": lambda model: model.fit((each[None], each[None, :1]) for each in x),
        "a dataset of a generator": lambda model: model.fit(made.repeat(2), verbose=0),
        "a PyDataset": lambda model: model.fit(Rows(x), verbose=0),
        "a PyDataset with workers": lambda model: model.fit(Rows(x, workers=2), verbose=0),
        "a dataset for replicas": lambda model: model.fit(_pairs(), verbose=0),
    }
    strategies = {"a dataset for replicas": tf.distribute.MirroredStrategy(["CPU:0"]).scope()}
    found = {}
    for name, fit in given.items():
        with patch.object(keras_hooks, "_kept", None):
            keras_hooks.hook_keras()
            keras_hooks.keep_last_fit(large_models=True)
            with strategies.get(name, contextlib.nullcontext()):
                model = keras.Sequential([keras.layers.Dense(1)])
                model.compile("sgd", "mse")
            fit(model)
            found[name] = watched_calibration.may_be_timed(keras_hooks.last_fit())
    return found


class Rows(keras.utils.PyDataset):
    """Batches of two rows."""

    def __init__(self, x: Any, **options: Any) -> None:
        super().__init__(**options)
        self.x = x

    def __len__(self) -> int:
        return len(self.x) // 2

    def __getitem__(self, number: int) -> Any:
        rows = self.x[2 * number : 2 * number + 2]
        return rows, rows[:, :1]


def _pairs(*, python: bool = False) -> Any:
    numbers = _numbers()
    if python:
        numbers = numbers.map(
            lambda each: tf.ensure_shape(tf.numpy_function(np.negative, [each], tf.float32), (None, 3))
        )
    return numbers.map(lambda each: (each, each[:, :1]))


def time_loop_alone() -> dict[str, Any]:
    """Time the step of a loop that calls a function; return what was written, and the weight before and after."""
    try:
        own_loops.keep_last_step()
        step_hooks.listen(notes := [].append)
        weight = tf.Variable(1.0)

        @tf.function
        def step(batch: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = weight * tf.reduce_mean(batch)
            weight.assign_sub(0.01 * tape.gradient(loss, weight))
            return loss

        for _ in range(2):
            for batch in _numbers():
                step(batch)
        before = float(weight)
        found = calibrated()
        return {**found, "is_unchanged": float(weight) == before}
    finally:
        step_hooks.leave(notes)
        gradient_hooks.function_listeners.remove(own_loops._keep)
        own_loops._last.clear()


def find_trained_in_loop(loop: str) -> list[str]:
    """Train in one pass, after a step of another one, and read another dataset more often; return the calls of the one trained on."""
    live_iterators.note_new_iterators()
    noted_datasets.note_new_datasets()
    weight = tf.Variable(1.0)

    @tf.function
    def step(batch: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = weight * tf.reduce_mean(batch)
        weight.assign_sub(0.01 * tape.gradient(loss, weight))

    with patch.object(wrapping, "ledger", Ledger()) as ledger:
        step_hooks.listen(notes := [].append)
        try:
            for batch in _numbers().skip(BATCHES - 1):
                step(batch)  # traces it
            _LOOPS[loop](step, _numbers().take(BATCHES), _numbers().prefetch(1))
        finally:
            step_hooks.leave(notes)
        recipe = ledger.recipe()
    assert recipe.trained is not None
    return [call.method for call in recipe.upstream(recipe.trained.call)]


def _train_from_python(step: Any, training: Any, validation: Any) -> None:
    for number, batch in enumerate(training):
        for each in validation if number % 3 == 0 else ():
            tf.reduce_mean(each)
        step(batch)


def _train_inside_function(step: Any, training: Any, validation: Any, *, hands_on: bool = True) -> None:
    @tf.function
    def train(*given: Any) -> None:
        for batch in given[0] if given else training:
            step(batch)

    @tf.function
    def validate(given: Any) -> None:
        for batch in given:
            tf.print(tf.reduce_mean(batch), output_stream="file:///dev/null")

    for _ in range(3):
        train(*[training] if hands_on else [])
        for _ in range(2):
            validate(validation)


def _train_in_function_for_both(step: Any, training: Any, validation: Any, *, by_default: bool = False) -> None:
    @tf.function
    def run_epoch(given: Any, trains: bool = True) -> None:
        for batch in given:
            if trains:
                step(batch)
            else:
                tf.print(tf.reduce_mean(batch), output_stream="file:///dev/null")

    run_epoch(training, True)
    for _ in range(2):
        run_epoch(training, *[] if by_default else [True])
        for _ in range(2):
            run_epoch(validation, trains=False)


def _train_on_replicas(_step: Any, training: Any, validation: Any) -> None:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        weight = tf.Variable(1.0, aggregation=tf.VariableAggregation.SUM)

    def step(batch: Any) -> None:
        with tf.GradientTape() as tape:
            loss = weight * tf.reduce_mean(batch)
        weight.assign_sub(0.01 * tape.gradient(loss, weight))

    train = tf.function(lambda batch: strategy.run(step, (batch,)))
    validate = tf.function(lambda batch: strategy.run(tf.reduce_mean, (batch,)))
    training, validation = map(strategy.experimental_distribute_dataset, (training, validation))
    for number, batch in enumerate(training):
        for each in validation if number % 3 == 0 else ():
            validate(each)
        train(batch)


_LOOPS: dict[str, Callable[[Any, Any, Any], None]] = {
    "in Python": _train_from_python,
    "in a function": _train_inside_function,
    "in a function that closes over it": functools.partial(_train_inside_function, hands_on=False),
    "in a function for both": _train_in_function_for_both,
    "in a function for both, by default": functools.partial(_train_in_function_for_both, by_default=True),
    "on replicas": _train_on_replicas,
}


def _told(wanted: Any, found: Any) -> Any:
    tf.print("a line for each step")
    return tf.reduce_mean((wanted - found) ** 2)


def _fitted(**compiled: Any) -> Any:
    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(1)(Doubled(lambda x: 2.0 * x)(inputs)))
    model.compile(**{"optimizer": "adam", "loss": "mse", **compiled})
    model.fit(_pairs(), epochs=2, verbose=0)
    return model


def _numbers() -> Any:
    return tf.data.Dataset.range(BATCHES * BATCH).map(lambda n: tf.fill([3], tf.cast(n, tf.float32))).batch(BATCH)


def calibrated() -> dict[str, Any]:
    recorded = Recorded()
    watched_calibration.calibrate(recorded, A_MOMENT_S)  # type: ignore[arg-type]
    events = [event for event in recorded.events if isinstance(event, CalibrationEvent)]
    return {
        "notes": recorded.notes,
        "times": [
            (event.device_only_ns, event.device_only_steps, event.pipeline_only_ns, event.pipeline_only_batches)
            for event in events
        ],
        "of_calls": [event.of_calls for event in events],
    }
