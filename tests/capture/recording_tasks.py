"""What tests ask of TensorFlow about recording jobs of the user's own: `explain`, `ProfileWindows`, running jobs."""

import contextlib
import doctest
import functools
import itertools
import signal
import sys
import threading
import time
import unittest.mock
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.profiler.internal import _pywrap_profiler

from pipeline_lab import explain
from pipeline_lab.capture import remote
from pipeline_lab.capture.profile_windows import ProfileWindows
from pipeline_lab.capture.script import job_threads, keras_hooks, step_hooks
from pipeline_lab.capture.script.live_iterators import BusiestIterator, note_new_iterators
from pipeline_lab.capture.script.step_notes import Note, Pass, Role
from pipeline_lab.capture.shared_profiler import SharedProfiler
from pipeline_lab.errors import CaptureError, PipelineLabError
from pipeline_lab.runs import own_job_runs
from pipeline_lab.runs.run_tables import MODEL, TableWriter
from pipeline_lab.runs.store import RunStore
from pipeline_lab.worker.note.event_log import Clock, EventLog
from pipeline_lab.worker.record.pipeline_model import ModelProbe
from tests.support.ports import free_port


def tell_when_keras_builds() -> list[bool]:
    """Return whether Keras is said to build its training function: in its first and second call, and after a call that fails."""
    told: list[bool] = []

    def train(iterator: str) -> None:
        told.append(keras_hooks.is_building())
        if iterator == "empty":
            raise StopIteration

    notes: list[Note] = []
    step_hooks.listen(notes.append)
    job_threads.here.epoch = Pass("fit", Role.FIT)
    try:
        timed = keras_hooks._timed(train, lambda: 1, trains=True)
        timed("some")
        timed("some")
        with contextlib.suppress(StopIteration):
            keras_hooks._timed(train, lambda: 1, trains=True)("empty")
        return [*told, keras_hooks.is_building()]
    finally:
        step_hooks.leave(notes.append)
        job_threads.here.epoch = None


def explain_a_dataset(store: str, fails: bool = False) -> dict[str, Any]:
    """Explain a dataset that takes 2 ms per example, in batches of four."""

    def fetch(number: np.int64) -> np.int64:
        time.sleep(0.002)
        return number

    dataset = tf.data.Dataset.range(10**6).map(lambda x: tf.numpy_function(fetch, [x], tf.int64, stateful=False))

    def step(_batch: Any) -> None:
        if fails:
            raise ValueError("no memory left for the batch")

    try:
        diagnosis = explain(dataset.batch(4), step, steps=20, store=store)
    except ValueError as error:
        return {"raised": str(error)}
    described = diagnosis.to_json()
    return {"verdict": described["verdict"], "tf_data": described["tf_data"], "html": diagnosis._repr_html_()}


def run_example_of_explain(folder: str) -> str:
    """Run the example in the description of ``explain``, and return what differs from what it shows."""
    (example,) = doctest.DocTestFinder(recurse=False).find(explain, globs={})
    said: list[str] = []
    with contextlib.chdir(folder), contextlib.redirect_stdout(sys.stderr):
        results = doctest.DocTestRunner(verbose=False).run(example, out=said.append)
    return "".join(said) if results.attempted else "There is no example."


def refused_settings() -> dict[str, str]:
    """Return what is said of settings that cannot be."""
    said = {}
    attempts = {
        "explain": lambda: explain(tf.data.Dataset.range(8), steps=0),
        "dataset": lambda: explain(5),
        "steps": lambda: explain(tf.data.Dataset.range(8), steps="many"),
        "step": lambda: explain(tf.data.Dataset.range(8), 5),
        "store": lambda: explain(tf.data.Dataset.range(8), store=5),
        "windows": lambda: ProfileWindows(steps_per_window=0),
    }
    for name, attempt in attempts.items():
        try:
            attempt()
        except PipelineLabError as error:
            said[name] = str(error)
    return said


def stop_recording(store: str) -> tuple[int, str]:
    """Train while somebody asks for the recording's end; return the steps taken, and the run."""
    taken = 0
    with ProfileWindows(store, steps_per_window=1, every_steps=2, warmup_steps=0) as windows:
        for taken, _ in enumerate(windows.steps(tf.data.Dataset.range(40)), 1):
            time.sleep(0.03)
            if taken == 5:
                windows.run.cancel_flag.touch()
    return taken, windows.run.id


def train_again(store: str) -> tuple[str, str]:
    """Leave a training in the middle of a window, as `fit` does after an error, and train again; return both runs."""
    left, again = (ProfileWindows(store, steps_per_window=10, every_steps=20, warmup_steps=0) for _ in range(2))
    left.on_train_begin()
    left.on_train_batch_begin(0)
    with again:
        for _ in again.steps(tf.data.Dataset.range(15)):
            pass
    return left.run.id, again.run.id


def fit_with_windows(store: str) -> tuple[bool, str]:
    """Fit two epochs of four steps, with validation; say whether Keras reads results beside the training, and the run."""
    windows = ProfileWindows(store, steps_per_window=1, every_steps=3, warmup_steps=0, max_cost_percent=None)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensors((np.zeros([2, 3]), np.zeros([2, 1]))).repeat(4)
    model.fit(data, epochs=2, validation_data=data, verbose=0, callbacks=[windows])
    with unittest.mock.patch("keras.src.backend.IS_THREAD_SAFE", new=True):  # as in most versions of Keras
        return keras.callbacks.CallbackList([windows])._async_train, windows.run.id


def start_beside_another(folder: str) -> bool:
    """Ask for a session while TensorFlow has one that its Python knows nothing of, as of its profiler server; then let the
    job profile itself, and say whether ours was refused."""
    other, is_refused = _pywrap_profiler.ProfilerSession(), False
    other.start(f"{folder}/other", {})
    try:
        SharedProfiler().start(Path(folder, "ours"))
    except tf.errors.AlreadyExistsError:
        is_refused = True
    del other
    with tf.profiler.experimental.Profile(f"{folder}/job"):
        tf.random.normal([8])
    return is_refused


def record_by_address(store: str, job: str) -> tuple[str, str, str]:
    """Record two windows from a job that `works`, `idles`, `ends` behind the first of them, or is `nowhere`; return how it went."""
    record, calls = tf.profiler.experimental.client.trace, itertools.count()

    def trace(*arguments: Any, **options: Any) -> None:
        if job == "ends" and next(calls):
            raise RuntimeError("UNAVAILABLE: socket closed")
        record(*arguments, **options)

    def work() -> None:
        while job != "idles" and not is_over.wait(0.01):
            tf.random.normal([8])

    is_over = threading.Event()
    worker = threading.Thread(target=work)
    worker.start()
    address = f"localhost:{free_port()}" if job == "nowhere" else _profiler_server()
    folder = own_job_runs.begin(RunStore(Path(store)), "capture", tags=())
    listens = (lambda _: False) if job == "ends" else remote._listens
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with (
            unittest.mock.patch("tensorflow.profiler.experimental.client.trace", trace),
            unittest.mock.patch.object(remote, "_listens", listens),
        ):
            state, reason = remote._Series(folder, EventLog(folder.events), address, 0.2, 0.3, 2).record()
    except CaptureError as error:
        return folder.id, "failed", str(error)
    finally:
        is_over.set()
        worker.join()
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return folder.id, state.value, reason


@functools.cache
def _profiler_server() -> str:
    """Start a profiler server in this process and return its address."""
    port = free_port()
    tf.profiler.experimental.server.start(port)
    return f"localhost:{port}"


def sample_the_busiest(path: str) -> list[int]:
    """Look at two pipelines in turns, as a training that validates has them; return how many looks found nothing."""
    note_new_iterators()
    dataset = tf.data.Dataset.range(1000).batch(4)
    busiest, found = BusiestIterator(), []
    busiest.find()  # what other tests left behind has yielded all that it will
    with contextlib.closing(TableWriter(Path(path), MODEL)) as table:
        probe = ModelProbe(table, Clock(), busiest.find)
        for iterator, batches in ((iter(dataset), 3), (iter(dataset), 5)):
            for _ in range(batches):
                next(iterator)
            found += [probe.sample(), probe.sample()]
    return found
