"""What the tests of captures do on the pretend GPU."""

import ctypes
import os
import threading
from typing import Any

import keras
import tensorflow as tf

from pipeline_lab.capture import ProfileWindows, watch_script
from pipeline_lab.capture.script.job_threads import now_ns
from pipeline_lab.capture.script.step_hooks import leave, listen
from pipeline_lab.capture.script.step_notes import Note, Saved
from pipeline_lab.worker.recipe.keeping import KeptRecipe


def watch(folder: str, *, every_s: float, window_s: float) -> None:
    """Watch ``train.py`` in a folder, into the store beside it."""
    os.chdir(folder)
    watch_script.main(["--store", "store", "--every", str(every_s), "--seconds", str(window_s), "--quiet", "train.py"])


def recipe_written_by(store: str) -> list[str]:
    """Return the threads that write the recipe while a loop goes on, which lasts until one has."""
    threads, written = [], threading.Event()
    write = KeptRecipe.write

    def write_and_tell(self: KeptRecipe, *, is_last: bool = False) -> None:
        write(self, is_last=is_last)
        if not is_last:
            threads.append(threading.current_thread().name)
            written.set()

    KeptRecipe.write = write_and_tell
    with ProfileWindows(store, warmup_steps=10**6) as windows:
        for _ in windows.steps(tf.data.Dataset.range(10**9)):
            if written.wait(0.01):
                break
    return threads


def copies_of_fit(store: str) -> list[int]:
    """Return the copies to the host in a ``fit`` with nothing of ours, and in one with ``ProfileWindows`` that never open."""
    count = ctypes.CDLL(os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"]).PretendGpuCopiesToHost
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    batches = tf.data.Dataset.from_tensors((tf.ones([8, 4]), tf.ones([8, 1]))).repeat()
    callbacks: list[list[Any]] = [[], [], [ProfileWindows(store, warmup_steps=10**6)]]  # the first fit traces
    copies = []
    for each in callbacks:
        before = count()
        model.fit(batches, steps_per_epoch=20, verbose=0, callbacks=each)
        copies.append(count() - before)
    return copies[1:]


def save_while_working(folder: str) -> dict[str, list[int]]:
    """Write a checkpoint while the device has four steps to do; return when these were launched, when the writing began and ended, and
    what was noted of it."""
    notes: list[Note] = []
    factors = tf.Variable(tf.ones([8, 8]))
    step = tf.function(lambda: factors.assign(0.1 * tf.linalg.matmul(factors, factors)))
    step()
    tf.train.Checkpoint(factors=factors).write(f"{folder}/first")  # traces what later ones run
    listen(notes.append)
    try:
        launched_ns = now_ns()
        for _ in tf.data.Dataset.range(4):
            step()
        begun_ns = now_ns()
        tf.train.Checkpoint(factors=factors).write(f"{folder}/model")
        called = [begun_ns, now_ns()]
    finally:
        leave(notes.append)
    (saved,) = (note for note in notes if isinstance(note, Saved))
    return {"launched": [launched_ns], "called": called, "noted": [saved.asked_ns, saved.ended_ns]}
