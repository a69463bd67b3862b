"""What the tests of captures do on the pretend GPU."""

import ctypes
import os
from typing import Any

import keras
import tensorflow as tf

from pipeline_lab.capture import ProfileWindows, watch_script


def watch(folder: str, *, every_s: float, window_s: float) -> None:
    """Watch ``train.py`` in a folder, into the store beside it."""
    os.chdir(folder)
    watch_script.main(["--store", "store", "--every", str(every_s), "--seconds", str(window_s), "--quiet", "train.py"])


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
