"""The training step of each workload, and that of the images workload itself."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from pipeline_lab.options.audio_workload import AudioWorkload
from pipeline_lab.options.pipeline import AugmentStage
from pipeline_lab.options.run import RunOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.options.workload import (
    FeaturesWorkload,
    GeneratorWorkload,
    ImagesWorkload,
    ModuleWorkload,
    SparseWorkload,
    SyntheticWorkload,
)
from pipeline_lab.runs.files import DataFile
from pipeline_lab.worker.audio_trainer import AudioTrainer
from pipeline_lab.worker.data.images import DIGIT_CLASSES
from pipeline_lab.worker.features_trainer import FeaturesTrainer
from pipeline_lab.worker.model import build_network
from pipeline_lab.worker.optimizer import make_optimizer
from pipeline_lab.worker.own_trainer import OwnTrainer
from pipeline_lab.worker.sparse_trainer import SparseTrainer
from pipeline_lab.worker.timers import GpuTimer, HostTimer, step_times
from pipeline_lab.worker.trainer import Batch, OneDeviceTrainer, Trainer


def make_trainer(
    options: RunOptions, *, is_gpu: bool, tables: Sequence[DataFile] = (), pipeline: Any = None
) -> Trainer:
    """Build the step of a run's workload.

    Args:
        options: Of the run.
        is_gpu: It trains on a GPU.
        tables: What lies beside its files.
        pipeline: Of a module of the user's, which brings its own step.
    """
    workload = options.workload
    match workload:
        case ModuleWorkload():
            return OwnTrainer(pipeline)
        case ImagesWorkload():
            return ImageTrainer(workload, options.training, _image_size(options, workload))
        case AudioWorkload():
            return AudioTrainer(workload, options.training)
        case SparseWorkload():
            return SparseTrainer(workload, options.training, is_gpu=is_gpu)
        case FeaturesWorkload():
            return FeaturesTrainer(workload, options, tables)
        case GeneratorWorkload() | SyntheticWorkload():
            times = step_times(workload)
            return GpuTimer(times) if is_gpu else HostTimer(times)


class ImageTrainer(OneDeviceTrainer):
    """Trains the residual network; loss and accuracy come from the same forward pass that trains."""

    def __init__(self, workload: ImagesWorkload, training: TrainingOptions, image_size: int) -> None:
        keras.mixed_precision.set_global_policy(training.precision)
        classes = DIGIT_CLASSES if workload.data == "digits" else workload.classes
        self._network = build_network(image_size, classes)
        self._optimizer = make_optimizer(training)
        self._optimizer.build(self._network.trainable_variables)
        self._train, self._judge = tf.function(self._train_on), tf.function(self._judge_on)

    def step(self, batch: Batch) -> Any:
        return self._train(batch["image"], batch["label"])

    def evaluate(self, batch: Batch) -> Any:
        return self._judge(batch["image"], batch["label"])

    def read(self, result: Any) -> tuple[float, float]:
        loss, accuracy = result
        return float(loss), float(accuracy)

    def weights(self) -> list[Any]:
        return [*self._network.variables, *self._optimizer.variables]

    def _train_on(self, images: Any, labels: Any) -> Any:
        weights = self._network.trainable_variables
        with tf.GradientTape() as tape:
            loss, accuracy = self._judge_on(images, labels, training=True)
            scaled_loss = self._optimizer.scale_loss(loss)
        self._optimizer.apply(tape.gradient(scaled_loss, weights), weights)
        return loss, accuracy

    def _judge_on(self, images: Any, labels: Any, *, training: bool = False) -> Any:
        if images.dtype == tf.uint8:
            images = tf.cast(images, tf.float32) / 255.0
        logits = self._network(images, training=training)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        is_right = tf.equal(tf.argmax(logits, axis=-1), labels)
        return tf.reduce_mean(losses), tf.reduce_mean(tf.cast(is_right, tf.float32))


def _image_size(options: RunOptions, workload: ImagesWorkload) -> int:
    """Return the size of the images as they leave the pipeline, pixels."""
    augment = options.pipeline.find("augment")
    if not isinstance(augment, AugmentStage):
        return workload.image_size
    return augment.crop or workload.image_size + 2 * augment.pad
