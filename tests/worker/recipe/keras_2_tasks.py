"""What is noted of Keras 2 (``tf_keras``), in the process that has TensorFlow."""

import importlib
import itertools
from collections import Counter, deque
from typing import Any
from unittest.mock import patch

import numpy as np
import tensorflow as tf
import tf_keras

from pipeline_lab.capture.script import keras_hooks, noted_datasets, step_hooks
from pipeline_lab.capture.script.step_notes import Called, Ended, Evaluated, Note, OfPass, Predicted, Seen, Took
from pipeline_lab.capture.watched_calibration import may_be_timed
from pipeline_lab.worker.recipe.notes import note_of
from tests.worker.recipe.alone_tasks import calibrated

BATCH = 4


class Rows(tf_keras.utils.Sequence):
    """Batches of four rows."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, number: int) -> Any:
        return np.ones((BATCH, 3), np.float32), np.ones((BATCH, 1), np.float32)


def note_keras_2(steps_per_execution: int = 1) -> dict[str, Any]:
    """Train two epochs of five batches with an evaluation of two after each, evaluate and predict; return the notes by pass."""
    notes: deque[Note] = deque()
    keras_hooks.hook_keras()
    step_hooks.listen(notes.append)
    try:
        model = _model(steps_per_execution=steps_per_execution)
        model.fit(_pairs(5), validation_data=_pairs(2), epochs=2, verbose=0)
        model.evaluate(_pairs(1), verbose=0)
        model.predict(np.ones((1, 3), np.float32), verbose=0)
    finally:
        step_hooks.leave(notes.append)
    told = [note for note in notes if isinstance(note, OfPass)]
    passes = [(of, list(group)) for of, group in itertools.groupby(told, lambda note: note.of)]
    return {
        "passes": [
            {
                "role": of.role.value,
                "examples": of.examples,
                "steps": [note.steps for note in group if isinstance(note, Called)],
                "ends": sum(isinstance(note, Ended) for note in group),
                "gaps": sum(isinstance(note, Seen) for note in group),
                "evaluations": sum(isinstance(note, Evaluated) for note in group),
            }
            for of, group in passes
        ],
        "predicted": [note.call.partition(":")[0] for note in notes if isinstance(note, Predicted)],
    }


def time_keras_2_alone(steps_per_execution: int = 1) -> dict[str, Any]:
    """Time the step of a model after its ``fit``; return what was written, and whether the model is as it was."""
    with patch.object(keras_hooks, "_kept", None):
        keras_hooks.hook_keras()
        keras_hooks.keep_last_fit(large_models=False)
        model = _model(steps_per_execution=steps_per_execution)
        model.fit(_pairs(6), epochs=2, verbose=0)
        before = [each.numpy() for each in (*model.variables, *model.optimizer.variables)]
        found = calibrated()
        after = [each.numpy() for each in (*model.variables, *model.optimizer.variables)]
    return {**found, "is_unchanged": all(map(np.array_equal, before, after))}


def read_sequences() -> dict[str, Any]:
    """Return which fits on a ``Sequence`` are timed although nobody asked, and the kinds of Python that such a dataset runs."""
    noted_datasets.note_new_datasets()
    found = {}
    for workers, callbacks in ((1, []), (2, []), (2, [_Ends()])):
        with patch.object(keras_hooks, "_kept", None):
            keras_hooks.hook_keras()
            keras_hooks.keep_last_fit(large_models=True)
            _model().fit(Rows(), workers=workers, epochs=2, verbose=0, callbacks=callbacks)
            fit = keras_hooks.last_fit()
            assert fit is not None
            kinds = {part.kind for note in note_of(fit.dataset).upstream() for part in note.python}
            found[f"{workers}{' ended' if callbacks else ''}"] = [may_be_timed(fit), sorted(kinds)]
    return found


def note_own_loop(package: str) -> list[list[Any]]:
    """Take steps of two epochs with a model's own function, then some on batches; return the passes, with their calls and what is said of them."""
    notes: deque[Note] = deque()
    keras = importlib.import_module(package)
    keras_hooks.hook_keras()
    step_hooks.listen(notes.append)
    try:
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile("adam", "mse")
        made = model.make_train_function()  # Keras 3 keeps it only
        step = made or model.train_function
        for _ in range(2):
            batches = iter(_pairs(3))
            for _ in range(3):
                step(batches)
        for batch in list(_pairs(3)):
            model.test_on_batch(*batch)
    finally:
        step_hooks.leave(notes.append)
    told = [note for note in notes if isinstance(note, OfPass) and isinstance(note, Called | Took)]
    passes = itertools.groupby(told, lambda note: note.of)
    return [[of.role.value, of.call, [type(note).__name__ for note in group]] for of, group in passes]


def note_callbacks(package: str) -> dict[str, Any]:
    """Evaluate and predict in a callback after the second of four steps, and validate; return the calls that were noted."""
    notes: deque[Note] = deque()
    keras = importlib.import_module(package)
    keras_hooks.hook_keras()

    class Watches(keras.callbacks.Callback):  # type: ignore[name-defined, misc]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002 (named by Keras)
            if batch == 1:
                self.model.evaluate(np.ones((5, 3)), np.ones((5, 1)), batch_size=2, verbose=0)
                self.model.predict(np.ones((9, 3)), batch_size=2, verbose=0)
                self.model.predict(np.ones((2, 3)), batch_size=2, verbose=0)

    step_hooks.listen(notes.append)
    try:
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile("adam", "mse")
        model.fit(_pairs(4), validation_data=_pairs(2), callbacks=[Watches()], verbose=0)
    finally:
        step_hooks.leave(notes.append)
    takes = Counter(note.of for note in notes if isinstance(note, Called | Took))
    evaluated = [note for note in notes if isinstance(note, Evaluated)]
    return {
        "evaluated": [[note.of.role.value, note.call.partition(" at ")[0], takes[note.of]] for note in evaluated],
        "predicted": [note.call.partition(" at ")[0] for note in notes if isinstance(note, Predicted)],
    }


def note_nested(package: str) -> list[list[str]]:
    """Validate with a model whose ``evaluate`` calls Keras' own, and predict meanwhile; evaluate in a function named ``fit``; return the calls."""
    notes: deque[Note] = deque()
    keras = importlib.import_module(package)
    keras_hooks.hook_keras()

    class Own(keras.Sequential):  # type: ignore[name-defined, misc]
        def evaluate(self, *given: Any, **options: Any) -> Any:
            return super().evaluate(*given, **options)

    class Predicts(keras.callbacks.Callback):  # type: ignore[name-defined, misc]
        def on_test_end(self, logs: Any = None) -> None:  # noqa: ARG002 (named by Keras)
            self.model.predict(np.ones((9, 3)), batch_size=2, verbose=0)

    class Fits(keras.callbacks.Callback):  # type: ignore[name-defined, misc]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002 (named by Keras)
            fit(self.model)

    def fit(model: Any) -> None:
        model.evaluate(np.ones((5, 3)), np.ones((5, 1)), batch_size=2, verbose=0)

    step_hooks.listen(notes.append)
    try:
        model = Own([keras.layers.Dense(1)])
        model.compile("adam", "mse")
        model.fit(_pairs(4), validation_data=_pairs(2), callbacks=[Predicts(), Fits()], verbose=0)
    finally:
        step_hooks.leave(notes.append)
    evaluated = [note for note in notes if isinstance(note, Evaluated)]
    return [[note.of.role.value, note.call.partition(":")[0]] for note in evaluated]


class _Ends(tf_keras.callbacks.Callback):
    """Ends the training with its first epoch."""

    def on_epoch_end(self, _epoch: int, _logs: Any = None) -> None:
        self.model.stop_training = True


def _model(**compiled: Any) -> Any:
    model = tf_keras.Sequential([tf_keras.layers.Dense(1), tf_keras.layers.Dropout(0.5)])
    model.compile("adam", "mse", **compiled)
    return model


def _pairs(batches: int) -> Any:
    rows = tf.data.Dataset.range(BATCH * batches).map(lambda n: (tf.fill([3], tf.cast(n, tf.float32)), [1.0]))
    return rows.batch(BATCH, drop_remainder=True)
