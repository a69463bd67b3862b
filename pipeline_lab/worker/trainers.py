"""The training step of each workload."""

import hashlib
import math
import time
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from pipeline_lab.options.pipeline import AugmentStage
from pipeline_lab.options.run import RunOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.options.workload import ImagesWorkload, SyntheticWorkload
from pipeline_lab.units import NS_PER_MS
from pipeline_lab.worker.data.images import DIGIT_CLASSES
from pipeline_lab.worker.model import build_network
from pipeline_lab.worker.trainer import Batch, Trainer

MOMENTUM = 0.9
HASHED_BYTES = 100_000
MATRIX_SIZE = 2048
MATRIX_TRIALS = 20


def make_trainer(options: RunOptions, *, is_gpu: bool) -> Trainer:
    """Build the step of a run's workload."""
    workload = options.workload
    if isinstance(workload, SyntheticWorkload):
        return GpuTimer(workload) if is_gpu else HostTimer(workload)
    return ImageTrainer(workload, options.training, _image_size(options, workload))


class ImageTrainer:
    """Trains the residual network; loss and accuracy come from the same forward pass that trains."""

    def __init__(self, workload: ImagesWorkload, training: TrainingOptions, image_size: int) -> None:
        keras.mixed_precision.set_global_policy(training.precision)
        classes = DIGIT_CLASSES if workload.data == "digits" else workload.classes
        self._network = build_network(image_size, classes)
        self._optimizer = _optimizer(training)
        self._optimizer.build(self._network.trainable_variables)
        self._train = tf.function(self._train_on)

    def step(self, batch: Batch) -> Any:
        return self._train(batch["image"], batch["label"])

    def read(self, result: Any) -> tuple[float, float]:
        loss, accuracy = result
        return float(loss), float(accuracy)

    def save_state(self) -> Any:
        return [variable.numpy() for variable in self._variables()]

    def restore_state(self, state: Any) -> None:
        for variable, value in zip(self._variables(), state, strict=True):
            variable.assign(value)

    def _variables(self) -> list[Any]:
        return [*self._network.variables, *self._optimizer.variables]

    def _train_on(self, images: Any, labels: Any) -> Any:
        if images.dtype == tf.uint8:
            images = tf.cast(images, tf.float32) / 255.0
        weights = self._network.trainable_variables
        with tf.GradientTape() as tape:
            logits = self._network(images, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
            scaled_loss = self._optimizer.scale_loss(loss)
        self._optimizer.apply(tape.gradient(scaled_loss, weights), weights)
        is_right = tf.equal(tf.argmax(logits, axis=-1), labels)
        return loss, tf.reduce_mean(tf.cast(is_right, tf.float32))


class HostTimer:
    """The synthetic step on a CPU: waits, or keeps one core busy, for a set time."""

    def __init__(self, workload: SyntheticWorkload) -> None:
        self._spend = _hash if workload.work == "spin" else time.sleep
        self._seconds = tf.constant(workload.compute_ms / 1e3, tf.float64)
        self._compute = tf.function(self._compute_on)

    def step(self, batch: Batch) -> Any:
        return self._compute(batch["payload"])

    def read(self, result: Any) -> tuple[float, float]:
        del result
        return math.nan, math.nan

    def save_state(self) -> Any:
        return None

    def restore_state(self, state: Any) -> None:
        del state

    def _compute_on(self, payload: Any) -> Any:
        tf.numpy_function(self._spend, [self._seconds], [])
        return tf.shape(payload)


class GpuTimer:
    """The synthetic step on a GPU: as many matrix products as fill the set time."""

    def __init__(self, workload: SyntheticWorkload) -> None:
        self._matrix = tf.constant(np.eye(MATRIX_SIZE, dtype=np.float32))
        self._compute = tf.function(self._compute_on, reduce_retracing=True)
        self._products = tf.constant(self._count_products(workload.compute_ms * NS_PER_MS))

    def step(self, batch: Batch) -> Any:
        return self._compute(batch["payload"], self._products)

    def read(self, result: Any) -> tuple[float, float]:
        float(result)
        return math.nan, math.nan

    def save_state(self) -> Any:
        return None

    def restore_state(self, state: Any) -> None:
        del state

    def _count_products(self, duration_ns: float) -> int:
        empty = tf.zeros([1, 1], tf.uint8)
        trials = tf.constant(MATRIX_TRIALS)
        float(self._compute(empty, trials))
        start_ns = time.perf_counter_ns()
        float(self._compute(empty, trials))
        product_ns = (time.perf_counter_ns() - start_ns) / MATRIX_TRIALS
        return max(1, round(duration_ns / product_ns))

    def _compute_on(self, payload: Any, products: Any) -> Any:
        product = self._matrix
        for _ in tf.range(products):
            product = tf.matmul(product, self._matrix)
        return product[0, 0] + tf.cast(payload[0, 0], tf.float32)


def _optimizer(training: TrainingOptions) -> Any:
    optimizer = keras.optimizers.SGD(training.learning_rate, momentum=MOMENTUM)
    if training.precision == "mixed_float16":
        return keras.mixed_precision.LossScaleOptimizer(optimizer)
    return optimizer


def _image_size(options: RunOptions, workload: ImagesWorkload) -> int:
    """Return the size of the images as they leave the pipeline, pixels."""
    augment = options.pipeline.find("augment")
    if not isinstance(augment, AugmentStage):
        return workload.image_size
    return augment.crop or workload.image_size + 2 * augment.pad


def _hash(seconds: float) -> None:
    """Keep one core busy; hashing a large block lets other Python threads run meanwhile."""
    block = bytes(HASHED_BYTES)
    due_s = time.perf_counter() + seconds
    while time.perf_counter() < due_s:
        hashlib.sha256(block)
