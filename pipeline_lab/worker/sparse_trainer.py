"""The step of the sparse workload: embeddings looked up on the host, a small network mirrored over several devices.

Sparse tensors leave tf.data as serialised variants, and each is put together again (``DeserializeSparse``) for each
replica before the step can start. The tables are not trained, as is usual for tables too large for a device; only the
network behind them is.
"""

from typing import Any

import tensorflow as tf

from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.worker.placement import PlacedTrainer, Placement
from pipeline_lab.worker.trainer import Batch
from pipeline_lab.workloads.sparse import SparseWorkload

HIDDEN_UNITS = 64


class SparseTrainer(PlacedTrainer):
    """Trains on its tables' embeddings; the tables are not trained."""

    def __init__(self, workload: SparseWorkload, training: TrainingOptions, placement: Placement) -> None:
        self._learning_rate = training.learning_rate
        width = workload.features * workload.embedding_size
        with tf.device("/CPU:0"):
            shape = [workload.vocabulary_size, workload.embedding_size]
            self._tables = [tf.Variable(tf.random.normal(shape), trainable=False) for _ in range(workload.features)]
        with placement.scope():
            self._layers = [_averaged([width, HIDDEN_UNITS], width), _averaged([HIDDEN_UNITS, 1], HIDDEN_UNITS)]
        super().__init__(placement, self._train_replica, self._judge_replica)

    def weights(self) -> list[Any]:
        return self._layers

    def _train_replica(self, batch: Batch) -> Any:
        """Train one replica on its share of the batch; the gradients are averaged over all."""
        with tf.GradientTape() as tape:
            loss, accuracy, logits = self._judge_replica(batch)
        for layer, gradient in zip(self._layers, tape.gradient(loss, self._layers), strict=True):
            layer.assign_sub(self._learning_rate * gradient)
        return loss, accuracy, logits

    def _judge_replica(self, batch: Batch) -> Any:
        embedded = self._look_up(batch)
        labels = tf.cast(batch["label"], tf.float32)[:, tf.newaxis]
        hidden = tf.nn.relu(tf.matmul(embedded, self._layers[0]))
        logits = tf.matmul(hidden, self._layers[1])
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, logits))
        is_right = tf.equal(logits > 0, labels > 0)
        return loss, tf.reduce_mean(tf.cast(is_right, tf.float32)), logits

    def _look_up(self, batch: Batch) -> Any:
        """Return the mean embedding of each feature's values, side by side, on the host."""
        with tf.device("/CPU:0"):
            parts = [
                tf.nn.embedding_lookup_sparse(table, batch[f"feature_{number}"], None, combiner="mean")
                for number, table in enumerate(self._tables)
            ]
            return tf.ensure_shape(tf.concat(parts, axis=1), [None, self._layers[0].shape[0]])


def _averaged(shape: list[int], inputs: int) -> Any:
    return tf.Variable(tf.random.normal(shape, stddev=inputs**-0.5), aggregation=tf.VariableAggregation.MEAN)
