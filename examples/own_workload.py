"""A pipeline and a training step of your own in the lab: runs, races and comparisons work on them.

pipeline-lab run --workload examples.own_workload:Digits --steps 100
pipeline-lab run --workload examples.own_workload:Digits --preset parallel --set workload.arguments.batch=32
pipeline-lab race --workload examples.own_workload:Digits plain parallel --seconds 60
"""

import keras
import tensorflow as tf
from sklearn.datasets import load_digits

PRESETS = {"plain": {}, "parallel": {"calls": 4, "prefetch": 2}}


class Digits:
    """scikit-learn's 1,797 digits, scaled up and cropped at random; what it is called with can be tuned."""

    def __init__(self, batch: int = 64, calls: int = 1, prefetch: int = 0) -> None:
        self.batch, self.calls, self.prefetch = batch, calls, prefetch
        self.model = keras.Sequential(
            [
                keras.layers.Input((32, 32, 1)),
                keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
                keras.layers.Flatten(),
                keras.layers.Dense(10),
            ]
        )
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])

    def make_dataset(self) -> tf.data.Dataset:
        """Return batches of images and labels without end."""
        digits = load_digits()
        dataset = tf.data.Dataset.from_tensor_slices((digits.images[..., None].astype("float32") / 16, digits.target))
        dataset = dataset.shuffle(1797).repeat().map(augment, num_parallel_calls=self.calls).batch(self.batch)
        return dataset.prefetch(self.prefetch) if self.prefetch else dataset


def augment(image: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Scale a digit up and cut a part out of it at random."""
    image = tf.image.resize(image, (64, 64), method="bicubic")
    return tf.image.random_crop(tf.image.resize(image, (40, 40)), (32, 32, 1)), label
