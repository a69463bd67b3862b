"""The step of the features workload: does the caption fit the image? Both become short vectors, whose product is the score."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline_lab.options.run import RunOptions
from pipeline_lab.runs.files import DataFile
from pipeline_lab.worker.trainer import Batch, OneDeviceTrainer
from pipeline_lab.workloads.features import FeaturesWorkload


class FeaturesTrainer(OneDeviceTrainer):
    """Trains the embedding of words and the projection of vectors; reads the table itself where the pipeline does not.

    Args:
        workload: The captions.
        options: Of the run.
        tables: The tables of vectors, read only if the step looks vectors up.
    """

    def __init__(self, workload: FeaturesWorkload, options: RunOptions, tables: Sequence[DataFile]) -> None:
        self._learning_rate = options.training.learning_rate
        size, width = workload.embedding_size, workload.vector_size
        self._words = tf.Variable(tf.random.normal([workload.vocabulary_size, size], stddev=size**-0.5))
        self._projection = tf.Variable(tf.random.normal([width, size], stddev=width**-0.5))
        self._bias = tf.Variable(tf.zeros([]))
        looks_up = workload.layout != "replicated" and options.pipeline.find("lookup") is None
        self._tables = [_load(table) for table in tables] if looks_up else []
        self._train, self._judge = tf.function(self._train_on), tf.function(self._judge_on)

    def step(self, batch: Batch) -> Any:
        return self._train(*self._inputs(batch))

    def evaluate(self, batch: Batch) -> Any:
        return self._judge(*self._inputs(batch))

    def read(self, result: Any) -> tuple[float, float]:
        loss, accuracy, *_ = result
        return float(loss), float(accuracy)

    def weights(self) -> list[Any]:
        return [self._words, self._projection, self._bias]

    def _inputs(self, batch: Batch) -> tuple[Any, Any, Any]:
        return batch["caption"], batch["image" if self._tables else "vector"], batch["label"]

    def _train_on(self, captions: Any, images: Any, labels: Any) -> Any:
        weights = self.weights()
        with tf.GradientTape() as tape:
            loss, accuracy, scores = self._judge_on(captions, images, labels)
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            if isinstance(gradient, tf.IndexedSlices):
                weight.scatter_sub(tf.IndexedSlices(self._learning_rate * gradient.values, gradient.indices))
            else:
                weight.assign_sub(self._learning_rate * gradient)
        return loss, accuracy, scores

    def _judge_on(self, captions: Any, images: Any, labels: Any) -> Any:
        labels = tf.cast(labels, tf.float32)
        scores = self._scores(captions, images)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, scores))
        return loss, tf.reduce_mean(tf.cast(tf.equal(scores > 0, labels > 0), tf.float32)), scores

    def _scores(self, captions: Any, images: Any) -> Any:
        """Return one score per caption and its image, shape (batch,).

        Args:
            captions: Numbers of words, shape (batch, words).
            images: Vectors, shape (batch, vector_size); numbers of images, shape (batch,), where the step looks up.
        """
        vectors = tf.nn.embedding_lookup(self._tables, images) if self._tables else images
        caption = tf.reduce_mean(tf.gather(self._words, captions), axis=1)
        return tf.reduce_sum(caption * tf.matmul(vectors, self._projection), axis=1) + self._bias


def _load(table: DataFile) -> Any:
    return tf.Variable(np.load(table.path, mmap_mode="r"), trainable=False)
