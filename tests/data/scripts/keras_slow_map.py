"""A Keras job whose map calls Python that waits, as a script that reads files with a library would."""

import sys
import time

import keras
import numpy as np
import tensorflow as tf

EXAMPLES, EPOCHS = int(sys.argv[1]), int(sys.argv[2])


def load(index: np.ndarray) -> np.ndarray:
    time.sleep(0.004)
    return np.full((64,), index % 7, np.float32)


def prepare(index: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    image = tf.ensure_shape(tf.numpy_function(load, [index], tf.float32), [64])
    return image, tf.cast(index % 7, tf.int64)


train = tf.data.Dataset.range(EXAMPLES).shuffle(64).map(prepare).batch(16)
validation = tf.data.Dataset.range(64).map(prepare).batch(16)
model = keras.Sequential([keras.layers.Dense(64, "relu"), keras.layers.Dense(7)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(train, epochs=EPOCHS, validation_data=validation, verbose=0)
