"""Train on a pipeline that is slow on purpose: each example waits 2 ms, and the step waits for all of them.

pipeline-lab watch --every 4 --seconds 1 examples/slow_pipeline.py  # what it costs; windows by the clock
python examples/slow_pipeline.py --windows                          # the same by the step
python examples/slow_pipeline.py --windows --cured                  # the cure
pipeline-lab compare SLOW CURED                                     # with the ids that `pipeline-lab runs list` shows
"""

import sys
import time

import keras
import numpy as np
import tensorflow as tf

from pipeline_lab.capture import ProfileWindows

CURED = "--cured" in sys.argv
BATCH, STEPS = 16, 250


def fetch(number: np.int64) -> np.ndarray:
    """Stand in for a request to a remote store."""
    time.sleep(0.002)
    return np.full(64, number % 10, np.float32)


def prepare(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Make one example and its target."""
    features = tf.ensure_shape(tf.numpy_function(fetch, [number], tf.float32, stateful=False), (64,))
    return features, tf.reduce_mean(features)


numbers = tf.data.Dataset.range(1_000_000)
if CURED:
    options = tf.data.Options()
    options.threading.private_threadpool_size = 8  # eight requests at a time need eight threads
    dataset = numbers.map(prepare, num_parallel_calls=8).batch(BATCH).prefetch(2).with_options(options)
else:
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False  # TensorFlow would cure a part by itself
    dataset = numbers.map(prepare).batch(BATCH).with_options(options)

model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
name = "cured pipeline" if CURED else "slow pipeline"
callbacks = [ProfileWindows(name=name)] if "--windows" in sys.argv else []
model.fit(dataset, steps_per_epoch=STEPS, epochs=1, verbose=2, callbacks=callbacks)
