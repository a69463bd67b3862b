"""Train with Keras' `fit` on scikit-learn's 1,797 digits.

pipeline-lab watch --every 2 --seconds 0.5 examples/keras_fit.py  # unchanged; windows by the clock
python examples/keras_fit.py --windows                            # one callback; windows by the step
pipeline-lab analyze RUN                                          # with the id that `pipeline-lab runs list` shows
"""

import sys

import keras
import tensorflow as tf
from sklearn.datasets import load_digits

from pipeline_lab.capture import ProfileWindows

digits = load_digits()
dataset = tf.data.Dataset.from_tensor_slices((digits.images[..., None].astype("float32") / 16, digits.target))
dataset = dataset.shuffle(1797).repeat().batch(64).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential(
    [
        keras.layers.Input((8, 8, 1)),
        keras.layers.Conv2D(32, 3, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(10),
    ]
)
model.compile(
    optimizer="adam",
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
callbacks = [ProfileWindows(name="keras fit")] if "--windows" in sys.argv else []
model.fit(dataset, steps_per_epoch=500, epochs=4, verbose=2, callbacks=callbacks)
