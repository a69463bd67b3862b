"""Data and step of the records workload: a small network on whatever numbers the records hold.

With a label it learns to predict it; without one it learns to copy its input through a narrow layer. Numbers can be of
any size, so their signed logarithm is taken; of strings, their length. A feature of many values, or of a number of
values that differs, enters by its mean.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from pipeline_lab.errors import DataError
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.runs.data_files.found_features import find_misfitting_record
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.worker.job_context import StopRequest
from pipeline_lab.worker.note.event_log import EventLog
from pipeline_lab.worker.train.placement import compile_step
from pipeline_lab.worker.train.training_steps import Batch, OneDeviceTrainer, Trainer
from pipeline_lab.worker.workloads.data_and_step import DataAndStep, Search, make_optimizer
from pipeline_lab.worker.workloads.data_files import find_user_files
from pipeline_lab.workloads.records import RecordFeature, RecordsWorkload

HIDDEN_UNITS = 64
MOST_VALUES = 256
"""A feature of more values enters by their mean."""


class RecordsTrainer(OneDeviceTrainer):
    """Trains two layers on the numbers of a batch's features."""

    def __init__(self, workload: RecordsWorkload, training: TrainingOptions) -> None:
        keras.mixed_precision.set_global_policy(training.precision)
        self._has_label = workload.label is not None
        self._features = [each for each in workload.parsed_features if each.name != workload.label]
        width = sum(_width(feature) for feature in self._features)
        outputs = workload.classes if self._has_label else width
        self._network = keras.Sequential(
            [
                keras.Input((width,)),
                keras.layers.Dense(HIDDEN_UNITS, activation="relu"),
                keras.layers.Dense(outputs, dtype="float32"),
            ]
        )
        self._optimizer = make_optimizer(training)
        self._optimizer.build(self._network.trainable_variables)
        self._train = compile_step(self._train_on, reduce_retracing=True)
        self._judge = compile_step(self._judge_on, reduce_retracing=True)

    def step(self, batch: Batch) -> Any:
        return self._train(batch["features"], batch.get("label"))

    def evaluate(self, batch: Batch) -> Any:
        return self._judge(batch["features"], batch.get("label"))

    def read(self, result: Any) -> tuple[float, float]:
        loss, accuracy, *_ = result
        return float(loss), float(accuracy)

    def weights(self) -> list[Any]:
        return [*self._network.variables, *self._optimizer.variables]

    def _train_on(self, features: Any, labels: Any) -> Any:
        weights = self._network.trainable_variables
        with tf.GradientTape() as tape:
            loss, accuracy, outputs = self._judge_on(features, labels)
            scaled_loss = self._optimizer.scale_loss(loss)
        self._optimizer.apply(tape.gradient(scaled_loss, weights), weights)
        return loss, accuracy, outputs

    def _judge_on(self, features: Any, labels: Any) -> Any:
        inputs = tf.concat([_numbers(each, features[each.name]) for each in self._features], axis=1)
        outputs = self._network(inputs)
        if not self._has_label:
            return tf.reduce_mean(tf.square(outputs - inputs)), tf.constant(float("nan")), outputs
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs)
        is_right = tf.equal(tf.argmax(outputs, axis=-1), labels)
        return tf.reduce_mean(losses), tf.reduce_mean(tf.cast(is_right, tf.float32)), outputs


def _width(feature: RecordFeature) -> int:
    return feature.length if feature.length is not None and feature.length <= MOST_VALUES else 1


def _numbers(feature: RecordFeature, values: Any) -> Any:
    """Return what the network sees of a feature, shape (batch, width)."""
    is_ragged = isinstance(values, tf.RaggedTensor)
    flat = values.flat_values if is_ragged else values
    flat = tf.strings.length(flat) if flat.dtype == tf.string else flat
    numbers = tf.cast(flat, tf.float32)
    numbers = tf.sign(numbers) * tf.math.log1p(tf.abs(numbers))
    if is_ragged:
        means = tf.math.unsorted_segment_mean(numbers, values.value_rowids(), values.nrows())
        return means[:, tf.newaxis]
    if feature.length == 1:
        return numbers[:, tf.newaxis]
    return numbers if _width(feature) > 1 else tf.reduce_mean(numbers, axis=1, keepdims=True)


class RecordsDataAndStep(DataAndStep[RecordsWorkload]):
    """The user's own records; a light step on their numbers."""

    def find_files(self, log: EventLog, stop: StopRequest) -> list[DataFile]:
        del log
        return find_user_files(self.workload.pattern, stop)

    def searches(self) -> tuple[Search, ...]:
        return (self._find_misfit,)

    def make_trainer(self, options: RunOptions, *, is_gpu: bool, tables: Sequence[DataFile], pipeline: Any) -> Trainer:
        del is_gpu, tables, pipeline
        return RecordsTrainer(self.workload, options.training)

    def _find_misfit(self, path: Path, check: Callable[[], None]) -> DataError | None:
        remedy = "write it again, or change workload.features"
        return find_misfitting_record(path, self.workload.parsed_features, remedy, check)


DATA_AND_STEP = RecordsDataAndStep
