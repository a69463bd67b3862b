"""A loop of its own with a cache, a shuffle buffer that fills at each epoch, and a validation pass after it."""

import sys
import time

import numpy as np
import tensorflow as tf

EXAMPLES, EPOCHS = int(sys.argv[1]), int(sys.argv[2])


def read(index: np.ndarray) -> np.ndarray:
    time.sleep(0.001)
    return np.full((64,), index % 7, np.float32)


def examples(count: int) -> tf.data.Dataset:
    records = tf.data.Dataset.range(count)
    return records.map(lambda index: tf.ensure_shape(tf.numpy_function(read, [index], tf.float32), [64]))


train = examples(EXAMPLES).cache().shuffle(EXAMPLES).batch(16, drop_remainder=True).prefetch(2)
validation = examples(64).batch(16)
weights = tf.Variable(tf.random.normal([64, 64]))


@tf.function
def train_step(batch: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        hidden = batch
        for _ in range(20):
            hidden = tf.tanh(hidden @ weights)
        loss = tf.reduce_mean(hidden**2)
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for epoch in range(EPOCHS):
    for batch in train:
        loss = train_step(batch)
    validated = [tf.reduce_mean(tf.tanh(batch @ weights)) for batch in validation]
    print("epoch", epoch, "loss", float(loss))
