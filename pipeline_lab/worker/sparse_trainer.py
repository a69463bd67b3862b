"""The step of the sparse workload: embeddings looked up on the host, a small network mirrored over several devices.

Sparse tensors leave tf.data as serialised variants, and each is put together again (``DeserializeSparse``) for each
replica before the step can start. The tables are not trained, as is usual for tables too large for a device; only the
network behind them is.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.options.workload import SparseWorkload
from pipeline_lab.worker.trainer import Batch

HIDDEN_UNITS = 64


class SparseTrainer:
    """Trains on batches that a MirroredStrategy divides among its replicas."""

    def __init__(self, workload: SparseWorkload, training: TrainingOptions, *, is_gpu: bool) -> None:
        self._workload, self._learning_rate = workload, training.learning_rate
        devices = tf.config.list_logical_devices("GPU" if is_gpu else "CPU")[: workload.replicas]
        self._strategy = tf.distribute.MirroredStrategy([device.name for device in devices])
        width = workload.features * workload.embedding_size
        with tf.device("/CPU:0"):
            shape = [workload.vocabulary_size, workload.embedding_size]
            self._tables = [tf.Variable(tf.random.normal(shape), trainable=False) for _ in range(workload.features)]
        with self._strategy.scope():
            self._layers = [_mirrored([width, HIDDEN_UNITS], width), _mirrored([HIDDEN_UNITS, 1], HIDDEN_UNITS)]
        self._train: Any = None
        self._judge: Any = None

    def distribute(self, dataset: Any) -> Any:
        """Divide the batches, and fix what a step takes: sparse values differ in shape from batch to batch."""
        distributed = self._strategy.experimental_distribute_dataset(dataset)
        if self._train is None:
            signature = [distributed.element_spec]
            self._train = tf.function(self._train_on, input_signature=signature)
            self._judge = tf.function(self._judge_on, input_signature=signature)
        return distributed

    def parts(self, value: Any) -> Sequence[Any]:
        parts: Sequence[Any] = self._strategy.experimental_local_results(value)
        return parts

    def step(self, batch: Batch) -> Any:
        return self._train(batch)

    def evaluate(self, batch: Batch) -> Any:
        return self._judge(batch)

    def read(self, result: Any) -> tuple[float, float]:
        loss, accuracy = result
        return float(loss), float(accuracy)

    def weights(self) -> list[Any]:
        return self._layers

    def save_state(self) -> Any:
        return [layer.numpy() for layer in self._layers]

    def restore_state(self, state: Any) -> None:
        for layer, value in zip(self._layers, state, strict=True):
            layer.assign(value)

    def _train_on(self, batch: Batch) -> Any:
        return self._mean_of(self._train_replica, batch)

    def _judge_on(self, batch: Batch) -> Any:
        return self._mean_of(self._judge_replica, batch)

    def _mean_of(self, of_replica: Callable[[Batch], Any], batch: Batch) -> Any:
        loss, accuracy = self._strategy.run(of_replica, args=(batch,))
        return tuple(self._strategy.reduce("MEAN", part, axis=None) for part in (loss, accuracy))

    def _train_replica(self, batch: Batch) -> Any:
        """Train one replica on its share of the batch; the gradients are averaged over all."""
        with tf.GradientTape() as tape:
            loss, accuracy = self._judge_replica(batch)
        for layer, gradient in zip(self._layers, tape.gradient(loss, self._layers), strict=True):
            layer.assign_sub(self._learning_rate * gradient)
        return loss, accuracy

    def _judge_replica(self, batch: Batch) -> Any:
        embedded = self._look_up(batch)
        labels = tf.cast(batch["label"], tf.float32)[:, tf.newaxis]
        hidden = tf.nn.relu(tf.matmul(embedded, self._layers[0]))
        logits = tf.matmul(hidden, self._layers[1])
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, logits))
        is_right = tf.equal(logits > 0, labels > 0)
        return loss, tf.reduce_mean(tf.cast(is_right, tf.float32))

    def _look_up(self, batch: Batch) -> Any:
        """Return the mean embedding of each feature's values, side by side, on the host."""
        with tf.device("/CPU:0"):
            parts = [
                tf.nn.embedding_lookup_sparse(table, batch[f"feature_{number}"], None, combiner="mean")
                for number, table in enumerate(self._tables)
            ]
            return tf.ensure_shape(tf.concat(parts, axis=1), [None, self._layers[0].shape[0]])


def _mirrored(shape: list[int], inputs: int) -> Any:
    return tf.Variable(tf.random.normal(shape, stddev=inputs**-0.5), aggregation=tf.VariableAggregation.MEAN)
