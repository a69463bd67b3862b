"""What the process with TensorFlow notes of loops inside of ``tf.function``, and what such loops compute with and without it."""

import contextlib
import itertools
import linecache
import tempfile
import threading
import time
import unittest.mock
from collections import deque
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2

from pipeline_lab.capture.script import eager_steps, gradient_hooks, graph_loops, job_threads, keras_hooks, step_hooks
from pipeline_lab.capture.script.eager_steps import EagerSteps
from pipeline_lab.capture.script.saved_models import SCOPE, keep_clocks_out
from pipeline_lab.capture.script.step_notes import Called, GivenUp, Note, OfPass, Pass, Predicted, Took
from pipeline_lab.units import NS_PER_MS, NS_PER_S
from tests.support.patience import PATIENCE_S

WAIT_S, WORK_S = 0.02, 0.03
END_S = 0.1
BATCHES, EPOCHS = 4, 2


def time_graph_loops() -> dict[str, Any]:
    """Return what each loop computes before and after hooks are there, and the notes of each."""
    before = {name: _run(make) for name, make in LOOPS.items()}
    notes: deque[Note] = deque()
    step_hooks.listen(notes.append)
    try:
        graph_loops.hook_graph_loops()
        found = {}
        for name, make in LOOPS.items():
            notes.clear()
            result = _run(make)
            has_told = graph_loops.tell_steps()
            found[name] = {"before": before[name], "after": result, "told": has_told, "notes": _described(notes)}
    finally:
        step_hooks.leave(notes.append)
    return found


def save_graph_loop() -> dict[str, Any]:
    """Return what a saved loop and the one in memory compute, and whether the saved one holds anything of ours."""
    notes: deque[Note] = deque()
    step_hooks.listen(notes.append)
    try:
        graph_loops.hook_graph_loops()
        module = tf.Module()

        @tf.function
        def add(count: Any) -> Any:
            total = tf.constant(0, tf.int64)
            for each in tf.data.Dataset.range(count).batch(2):
                total += tf.reduce_sum(each)
            return total

        module.add = add
        with tempfile.TemporaryDirectory() as folder:
            traced = int(add(tf.constant(5, tf.int64)))
            has_told = graph_loops.tell_steps()
            tf.saved_model.save(module, folder, signatures=add.get_concrete_function(tf.TensorSpec([], tf.int64)))
            loaded = tf.saved_model.load(folder)
            saved = int(loaded.add(tf.constant(5, tf.int64)))
            content = (Path(folder) / "saved_model.pb").read_bytes()
        still_tells = int(add(tf.constant(5, tf.int64))) == traced and graph_loops.tell_steps()
    finally:
        step_hooks.leave(notes.append)
    ours = [name for name in (b"pipeline_lab", b"Timestamp", b"Unstage", b"Stage") if name in content]
    return {"results": [traced, saved], "told": [has_told, still_tells], "ours": [name.decode() for name in ours]}


def export_after_fit() -> dict[str, Any]:
    """Return what a fitted Keras model and its export answer, and whether the export holds anything of ours."""
    notes: deque[Note] = deque()
    step_hooks.listen(notes.append)
    try:
        keras_hooks.hook_keras()
        graph_loops.hook_graph_loops()
        model = keras.Sequential([keras.Input([3]), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        ones = tf.ones([4, 3])
        model.fit(tf.data.Dataset.from_tensors((ones, ones[:, :1])).repeat(BATCHES), verbose=0)
        with tempfile.TemporaryDirectory() as folder:
            model.export(folder, verbose=False)
            loaded = tf.saved_model.load(folder)  # whose variables end with it
            served = loaded.serve(ones)
            content = (Path(folder) / "saved_model.pb").read_bytes()
    finally:
        step_hooks.leave(notes.append)
    return {
        "steps": sum(each.steps for each in notes if isinstance(each, Called)),
        "answers": [float(each[0, 0]) for each in (model(ones), served)],
        "ours": b"pipeline_lab" in content,
    }


def save_graph_that_cannot_be_stripped() -> bool:
    """Say whether a model is saved as it is where its clocks cannot be taken out of one of its functions."""
    model = meta_graph_pb2.MetaGraphDef()
    model.graph_def.node.add(name=f"{SCOPE}/Timestamp", op="Timestamp")
    function = model.graph_def.library.function.add()
    function.node_def.add(name=f"{SCOPE}/Stage", op="Stage")
    function.control_ret["clock"] = f"{SCOPE}/Stage"  # which its signature does not have
    before = model.SerializeToString(deterministic=True)
    saved = keep_clocks_out(lambda: (model,))()[0]
    return bool(saved.SerializeToString(deterministic=True) == before)


def count_dropping_threads() -> int:
    """Return how many threads drop what loops say when several recordings have ended."""
    said = threading.Event()
    with (
        unittest.mock.patch.object(graph_loops, "DROP_S", 0.01),
        unittest.mock.patch.object(graph_loops, "_clear", said.set),
        unittest.mock.patch.dict(graph_loops._loops, {-1: None}),
    ):
        for _ in range(3):
            graph_loops.drop_steps()
        assert said.wait(PATIENCE_S)
        dropping = [each for each in threading.enumerate() if each.name == graph_loops.DROPPING]
        step_hooks.listen(print)
        for each in dropping:
            each.join(PATIENCE_S)
        step_hooks.leave(print)
    return len(dropping)


def take_gradients_beside_tracing() -> list[bool]:
    """Return whether gradients of a thread without batches count for the traced pass, and for one begun elsewhere meanwhile."""
    traced, other = Pass("traced", examples=1), Pass("other", examples=1)

    def trace_and_train() -> None:
        with gradient_hooks.tracing(traced):
            job_threads.anywhere.of = other  # as a batch on another thread does
        gradient_hooks.note_gradients()

    thread = threading.Thread(target=trace_and_train)  # this one may have taken batches
    thread.start()
    thread.join()
    return [traced.has_gradients, other.has_gradients]


def count_keys_of_numbers() -> list[int]:
    """Return what is kept of functions that are called with three numbers: of one that is traced for each, and of one with a signature."""

    def double(number: Any) -> Any:
        return 2 * number

    functions = [tf.function(double), tf.function(double, input_signature=[tf.TensorSpec([], tf.int64)])]
    notes: deque[Note] = deque()
    step_hooks.listen(notes.append)
    try:
        for function in functions:
            for number in range(3):
                function(number)
    finally:
        step_hooks.leave(notes.append)
    return [len(gradient_hooks._marks_of(function)) for function in functions]


def train_on_own_batches() -> dict[str, Any]:
    """Train on arrays that Python makes, with another function beside each step, an evaluation and a dataset between some."""
    notes: deque[Note] = deque()
    weight = tf.Variable(1.0)

    @tf.function
    def step(batch: Any) -> None:
        with tf.GradientTape() as tape:
            loss = weight * tf.reduce_mean(batch)
        weight.assign_sub(0.01 * tape.gradient(loss, weight))

    beside = tf.function(lambda batch: tf.numpy_function(_sleep(WAIT_S), [batch], tf.float32))
    step_hooks.listen(notes.append)
    try:
        batch = np.ones([4, 2], np.float32)
        step(batch)  # traces it
        for number in range(7):
            if number == 4:
                for _ in range(gradient_hooks.MOST_BESIDE + 1):
                    beside(batch)
            if number == 5:
                time.sleep(WAIT_S)
            if number == 6:
                for _ in tf.data.Dataset.range(2):
                    time.sleep(WAIT_S)
            step(batch)
            beside(batch)
    finally:
        step_hooks.leave(notes.append)
    steps = [note for note in notes if isinstance(note, Took) and note.of.call]
    return {
        "calls": sorted({note.of.call.partition(".py")[0] for note in steps}),
        "waits": [round((note.arrived_ns - note.asked_ns) / NS_PER_S / WAIT_S, 1) for note in steps],
        "examples": sorted({note.examples for note in steps}),
        "others train": any(note.of.has_gradients for note in notes if isinstance(note, Took) and not note.of.call),
    }


def train_op_by_op() -> dict[str, Any]:
    """Take gradients op by op on arrays, at two places a step, after a pass over a dataset whose last batch is trained on once it is over."""
    notes: deque[Note] = deque()
    weight, batch = tf.Variable(1.0), np.ones([4, 2], np.float32)

    def step() -> None:
        with tf.GradientTape(persistent=True) as tape:
            loss = weight * tf.reduce_mean(batch)
        weight.assign_sub(0.01 * tape.gradient(loss, weight))
        tape.gradient(loss, weight)

    step_hooks.listen(notes.append)
    marked: list[tuple[str, int]] = []
    mark = unittest.mock.patch.object(
        tf.profiler.experimental,
        "Trace",
        lambda name, step_num, _r: marked.append((name, step_num)) or contextlib.nullcontext(),
    )
    taken = EagerSteps()
    try:
        with mark, unittest.mock.patch.object(gradient_hooks, "eager_steps", taken):
            for _ in tf.data.Dataset.range(2):
                pass
            step()
            for _ in tf.data.Dataset.range(2):
                step()
            after = len(notes)
            for _ in range(5):
                time.sleep(WAIT_S)
                step()
    finally:
        step_hooks.leave(notes.append)
        job_threads.here.eager = job_threads.here.mark = None
    own = [note for note in list(notes)[after:] if isinstance(note, Called)]
    return {
        "steps": [(note.steps, note.of.has_gradients, note.ended_ns) for note in own],
        "apart": all(later.asked_ns - note.asked_ns >= WAIT_S * NS_PER_S for note, later in itertools.pairwise(own)),
        "loops": len({note.of for note in own}),
        "before": sum(isinstance(note, Called) for note in list(notes)[:after]),
        "marked": marked,
        "taken in": [(each.function, each.line - step.__code__.co_firstlineno) for each in taken.found],
    }


def train_in_function() -> list[str]:
    """Return what is taken for a function that takes gradients op by op, where a ``tf.function`` takes them."""
    weight = tf.Variable(1.0)

    @tf.function
    def step() -> None:
        with tf.GradientTape() as tape:
            loss = weight * 2.0
        weight.assign_sub(0.01 * tape.gradient(loss, weight))

    notes: deque[Note] = deque()
    step_hooks.listen(notes.append)
    taken = EagerSteps()
    try:
        with unittest.mock.patch.object(gradient_hooks, "eager_steps", taken):
            for _ in tf.data.Dataset.range(3):
                step()
    finally:
        step_hooks.leave(notes.append)
    return [each.function for each in taken.found]


def train_with_switches() -> list[list[list[str]]]:
    """Return the switches that are noted, and their lines, of steps that Keras', TensorFlow's or none lets run op by op, and of a callback."""
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    keras_hooks.hook_keras()
    model.compile(loss="mse", run_eagerly=True)
    found = [_fit_noting(model)]
    model.compile(loss="mse")
    try:
        tf.config.run_functions_eagerly(True)
        found.append(_fit_noting(model))
    finally:
        tf.config.run_functions_eagerly(False)
    return [*found, _fit_noting(model), _fit_noting(model, keras.callbacks.LambdaCallback(on_train_batch_end=_take))]


def _take(*_: Any, **__: Any) -> None:
    with tf.GradientTape() as tape:
        loss = (weight := tf.Variable(1.0)) * 2.0
    tape.gradient(loss, weight)


def _fit_noting(model: Any, *callbacks: Any) -> list[list[str]]:
    steps, inputs = EagerSteps(), np.ones([2, 2], np.float32)
    notes: deque[Note] = deque()
    step_hooks.listen(notes.append)
    try:
        with unittest.mock.patch.object(gradient_hooks, "eager_steps", steps):
            model.fit(inputs, inputs[:, :1], verbose=0, callbacks=callbacks)
    finally:
        step_hooks.leave(notes.append)
    with unittest.mock.patch.object(eager_steps, "users_files", return_value=[__file__]):
        return [[each.switch, linecache.getline(each.file, each.line).strip()] for each in steps.found]


def predict_in_loop() -> list[str]:
    """Return the calls of ``predict`` that are noted: of three with a batch at most, and one with more."""
    notes: deque[Note] = deque()
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    keras_hooks.hook_keras()
    step_hooks.listen(notes.append)
    try:
        for count, options in ((1, {}), (32, {}), (40, {"batch_size": 64}), (33, {})):
            model.predict(np.ones([count, 2], np.float32), verbose=0, **options)
    finally:
        step_hooks.leave(notes.append)
    return [
        note.call.partition(":")[0] for note in notes if isinstance(note, Predicted) and note.ended_ns > note.asked_ns
    ]


class _Slow:
    """Stands for the handle of an iterator that waits for its threads."""

    def __del__(self) -> None:
        time.sleep(END_S)


def make_iterators() -> list[bool]:
    """Return, for two passes over a dataset, whether they know when their iterators were made."""
    notes: deque[Note] = deque()
    dataset = tf.data.Dataset.range(2)

    @tf.function
    def add_up() -> Any:
        return next(iter(dataset))

    step_hooks.listen(notes.append)
    try:
        with unittest.mock.patch.object(step_hooks, "SHORTEST_START_NS", 0):
            for _ in range(2):
                iter(tf.data.Dataset.range(3))  # of no pass
                add_up()  # no iterator of Python's
                for _ in dataset:
                    pass
    finally:
        step_hooks.leave(notes.append)
    passes = list(dict.fromkeys(note.of for note in notes if isinstance(note, Took)))
    return [of.made is not None and of.made.ended_ns > of.made.asked_ns for of in passes]


def give_up_an_iterator() -> list[float]:
    """Return how long the ends that were noted took, ms, of an iterator that Python gives up and whose handle takes its time."""
    notes: deque[Note] = deque()
    step_hooks.listen(notes.append)
    try:
        iterator = iter(tf.data.Dataset.range(3))
        next(iterator)
        iterator._iterator_resource = _Slow()
        del iterator
    finally:
        step_hooks.leave(notes.append)
    return [(note.ended_ns - note.asked_ns) / NS_PER_MS for note in notes if isinstance(note, GivenUp)]


def _run(make: Any) -> list[float]:
    tf.random.set_seed(7)
    return [float(tf.convert_to_tensor(each)) for each in make()]


def _described(notes: deque[Note]) -> list[dict[str, Any]]:
    passes: dict[int, int] = {}
    return [
        {
            "pass": passes.setdefault(id(note.of), len(passes)),
            "trains": note.of.has_gradients,
            "asked": note.asked_ns,
            "arrived": note.arrived_ns if isinstance(note, Took) else None,
            "examples": note.examples if isinstance(note, Took) else None,
        }
        for note in notes
        if isinstance(note, OfPass)  # and no iterator that was released, which takes long by chance
    ]


def _sleep(seconds: float) -> Any:
    def sleep(value: Any) -> Any:
        time.sleep(seconds)
        return value

    return sleep


def _slow(batches: int = BATCHES) -> Any:
    """Return batches of two examples, the last one of one, each of which takes its time."""
    wait = _sleep(WAIT_S)
    numbers = tf.data.Dataset.range(2 * batches - 1).map(lambda each: tf.cast(each, tf.float32)).batch(2)
    return numbers.map(lambda each: tf.ensure_shape(tf.numpy_function(wait, [each], tf.float32), [None]))


def _step(weight: Any, batch: Any) -> Any:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((batch * weight - 1) ** 2) + tf.random.normal([])
    weight.assign_sub(0.01 * tape.gradient(loss, weight))
    tf.numpy_function(_sleep(WORK_S), [loss], tf.float32)
    return loss


def _epochs() -> Any:
    """Train for some epochs inside of one function, on a dataset from outside, and validate after each."""
    weight, dataset, validation = tf.Variable(1.0), _slow(), _slow(2)

    @tf.function
    def train() -> Any:
        total, checked = 0.0, 0.0
        for _ in tf.range(EPOCHS):
            for batch in dataset:
                total += _step(weight, batch)
            for batch in validation:
                checked += tf.reduce_sum(batch * weight)
        return total, checked, tf.random.normal([])

    return [*train(), weight]


def _given() -> Any:
    """Take the dataset as an argument, count steps, and leave the loop early."""
    weight = tf.Variable(1.0)

    @tf.function
    def train(dataset: Any) -> Any:
        steps = 0
        for batch in dataset:
            if steps == 3:
                break
            _step(weight, batch)
            steps += 1
        return steps

    return [train(_slow()), weight]


def _distributed() -> Any:
    """Train on two devices."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        weight = tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN)
    dataset = strategy.experimental_distribute_dataset(_slow())

    def step(batch: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((batch * weight - 1) ** 2)
        weight.assign_sub(0.01 * tape.gradient(loss, weight))
        return loss

    @tf.function
    def train(dataset: Any) -> Any:
        total = 0.0
        for batch in dataset:
            total += strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, (batch,)), axis=None)
        return total

    return [train(dataset), weight]


LOOPS = {"epochs": _epochs, "given": _given, "distributed": _distributed}
