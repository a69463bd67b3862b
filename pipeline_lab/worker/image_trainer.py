"""The step of the images workload."""

from typing import Any

import keras
import tensorflow as tf

from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.worker.model import build_network
from pipeline_lab.worker.optimizer import make_optimizer
from pipeline_lab.worker.placement import PlacedTrainer, Placement
from pipeline_lab.worker.trainer import Batch


class ImageTrainer(PlacedTrainer):
    """Trains the residual network; loss and accuracy come from the same forward pass that trains.

    Args:
        training: How it is trained.
        placement: On what devices.
        image_size: Height and width of the images as they leave the pipeline, pixels.
        classes: Number of labels.
    """

    def __init__(self, training: TrainingOptions, placement: Placement, image_size: int, classes: int) -> None:
        keras.mixed_precision.set_global_policy(training.precision)
        with placement.scope():
            self._network = build_network(image_size, classes)
            self._optimizer = make_optimizer(training)
            self._optimizer.build(self._network.trainable_variables)
        self._micro_batches = training.accumulate
        super().__init__(placement, self._train_replica, self._judge_replica, xla=training.xla)

    def weights(self) -> list[Any]:
        return [*self._network.variables, *self._optimizer.variables]

    def _judge_replica(self, batch: Batch) -> Any:
        return self._look_at(batch["image"], batch["label"], training=False)

    def _train_replica(self, batch: Batch) -> Any:
        """Add up the gradients of the micro-batches, then change the weights once."""
        weights = self._network.trainable_variables
        images, labels = batch["image"], batch["label"]
        examples, many = tf.shape(images)[0], self._micro_batches
        loss, accuracy, gradients = tf.zeros([]), tf.zeros([]), [tf.zeros([]) for _ in weights]
        logits = []
        for part in range(many):
            first, behind = part * examples // many, (part + 1) * examples // many
            share = tf.cast(behind - first, tf.float32) / tf.cast(examples, tf.float32)
            with tf.control_dependencies([loss, *gradients]):  # one after another: memory for one at a time
                some_images, some_labels = images[first:behind], labels[first:behind]
            with tf.GradientTape() as tape:
                part_loss, part_accuracy, part_logits = self._look_at(some_images, some_labels, training=True)
                scaled_loss = self._optimizer.scale_loss(part_loss * share / self._placement.replicas)
            more = tape.gradient(scaled_loss, weights)
            gradients = [gradient + added for gradient, added in zip(gradients, more, strict=True)]
            loss, accuracy = loss + share * part_loss, accuracy + share * part_accuracy
            logits.append(part_logits)
        self._optimizer.apply(gradients, weights)
        return loss, accuracy, tf.concat(logits, axis=0)

    def _look_at(self, images: Any, labels: Any, *, training: bool) -> Any:
        if images.dtype == tf.uint8:
            images = tf.cast(images, tf.float32) / 255.0
        logits = self._network(images, training=training)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        is_right = tf.equal(tf.argmax(logits, axis=-1), labels)
        return tf.reduce_mean(losses), tf.reduce_mean(tf.cast(is_right, tf.float32)), logits
