"""Data and step of the sparse workload: an Example with a list of integers per feature, a label and an id.

The step: embeddings looked up on the host, a small network mirrored over several devices.

Sparse tensors leave tf.data as serialized variants, and each is put together again (``DeserializeSparse``) for each
replica before the step can start. The tables are not trained, as is usual for tables too large for a device; only the
network behind them is.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.worker.train.placement import PlacedTrainer, Placement, place
from pipeline_lab.worker.train.training_steps import Batch, Trainer
from pipeline_lab.worker.workloads.data_and_step import DataAndStep
from pipeline_lab.worker.workloads.data_files import DataRecipe, record_id
from pipeline_lab.workloads.sparse import SparseWorkload

VALUE_BYTES = 3
FEATURE_BYTES = 24
EXAMPLE_BYTES = 48


def sparse_recipe(workload: SparseWorkload) -> DataRecipe:
    """Describe the files of the sparse workload."""

    def write_file(path: Path, file_index: int, count: int) -> None:
        generator = np.random.default_rng(file_index)
        with tf.io.TFRecordWriter(str(path)) as writer:
            for record in range(count):
                writer.write(_example(workload, generator, record_id(file_index, record)))

    feature_bytes = FEATURE_BYTES + VALUE_BYTES * workload.values_per_feature
    return DataRecipe(
        name="sparse",
        description={
            "data": "sparse",
            "features": workload.features,
            "values": workload.values_per_feature,
            "vocabulary": workload.vocabulary_size,
        },
        examples_per_file=workload.examples_per_file,
        record_bytes=workload.features * feature_bytes + EXAMPLE_BYTES,
        write_file=write_file,
    )


def _example(workload: SparseWorkload, generator: np.random.Generator, identity: int) -> bytes:
    counts = generator.integers(1, 2 * workload.values_per_feature, workload.features)
    values = np.split(generator.integers(0, workload.vocabulary_size, counts.sum()), np.cumsum(counts)[:-1])
    feature = {f"feature_{number}": _integers(part.tolist()) for number, part in enumerate(values)}
    feature |= {"label": _integers([int(values[0][0]) % 2]), "id": _integers([identity])}
    serialized: bytes = tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
    return serialized


def _integers(values: list[int]) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


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


class SparseDataAndStep(DataAndStep[SparseWorkload]):
    """Examples of sparse features; embeddings on the host and a small network."""

    def recipe(self) -> DataRecipe:
        return sparse_recipe(self.workload)

    def make_trainer(self, options: RunOptions, *, is_gpu: bool, tables: Sequence[DataFile], pipeline: Any) -> Trainer:
        del tables, pipeline
        placement = place(options.training.replicas, is_gpu=is_gpu)
        return SparseTrainer(self.workload, options.training, placement)


DATA_AND_STEP = SparseDataAndStep
