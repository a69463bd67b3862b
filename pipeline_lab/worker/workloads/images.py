"""Data and step of the images workload: JPEG, label and id in a ``tf.train.Example``, the way image data sets are
published.

The network is a residual network of eight layers, fixed for every preset:

``conv 16 → 3 stages of one residual block with 16, 32 and 64 channels → global average → dense`` (He et al. 2015,
section 4.2, with n = 1), batch normalization after each convolution, 1×1 convolutions where the shape changes: 78,042
trainable numbers for ten classes. It takes images of any size and is not scaled with them.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import DataError
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.runs.data_files.found_features import find_misfitting_record
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.worker.job_context import StopRequest
from pipeline_lab.worker.note.event_log import EventLog
from pipeline_lab.worker.train.placement import PlacedTrainer, Placement, place
from pipeline_lab.worker.train.training_steps import Batch, Trainer
from pipeline_lab.worker.workloads.data_and_step import DataAndStep, Search, make_optimizer
from pipeline_lab.worker.workloads.data_files import (
    DataRecipe,
    cached_files,
    files_in,
    find_class_folders,
    find_user_files,
    record_id,
)
from pipeline_lab.workloads.images import IMAGE_ENDINGS, ImagesWorkload
from pipeline_lab.workloads.records import RecordFeature

KNOWN_CLASSES = {"digits": 10, "cifar10": 10}
"""Of data that come with their labels."""

DIGIT_MAXIMUM = 16
RANDOM_IMAGES = 256
EXAMPLE_OVERHEAD_BYTES = 64


@dataclass(frozen=True)
class EncodedImages:
    """Different images, used in turn for as many examples as are asked for.

    Attributes:
        jpegs: Encoded images.
        labels: One class per image.
    """

    jpegs: Sequence[bytes]
    labels: Sequence[int]


def images_recipe(workload: ImagesWorkload) -> DataRecipe:
    """Describe the files of the `digits`, `cifar10` or `random` data."""
    images = _LazyImages(workload)
    description = {"data": workload.data, "size": workload.image_size}
    if workload.data == "random":
        description["classes"] = workload.classes
    return DataRecipe(
        name=f"{workload.data}-{workload.image_size}",
        description=description,
        examples_per_file=workload.examples_per_file,
        record_bytes=3 * workload.image_size**2 + EXAMPLE_OVERHEAD_BYTES,
        write_file=images.write_file,
    )


def digit_images(size: int) -> EncodedImages:
    """Return scikit-learn's 1,797 digits, scaled to size × size RGB."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    gray = (digits.images * (255 / DIGIT_MAXIMUM)).astype(np.float32)[..., np.newaxis]
    scaled = tf.image.resize(gray, [size, size]).numpy().round().astype(np.uint8)
    return EncodedImages(_encode(np.repeat(scaled, 3, axis=-1)), [int(label) for label in digits.target])


def random_images(size: int, classes: int, count: int) -> EncodedImages:
    """Return `count` images of noise; noise compresses badly, so they are as heavy as images of that size get."""
    generator = np.random.default_rng(0)
    jpegs = [tf.io.encode_jpeg(generator.integers(0, 256, (size, size, 3), np.uint8)).numpy() for _ in range(count)]
    return EncodedImages(jpegs, generator.integers(0, classes, count).tolist())


def cifar_images(size: int, most: int) -> EncodedImages:
    """Return photographs of CIFAR-10's training set, `most` of its 50,000 at most, scaled to size × size.

    Raises:
        DataError: They were never downloaded to this machine, and cannot be now.
    """
    try:
        (images, labels), _ = keras.datasets.cifar10.load_data()
    except Exception as error:  # Keras raises nothing narrower
        raise DataError(
            f"CIFAR-10 cannot be downloaded ({str(error).rstrip('.')}); connect this machine to the network once, or set "
            "workload.data = digits."
        ) from None
    images = images[:most]
    if size != images.shape[1]:
        images = tf.image.resize(images, [size, size]).numpy().round().astype(np.uint8)
    return EncodedImages(_encode(images), [int(label) for label in labels[:most].reshape(-1)])


def find_damaged_image(folder: Path, check: Callable[[], None]) -> DataError | None:
    """Name the first image of a class that cannot be decoded; ``check`` raises to end the search."""
    for path in files_in(folder, IMAGE_ENDINGS):
        check()
        if (why := _decoding_error(tf.io.read_file(str(path)))) is not None:
            return DataError(f"{path} cannot be decoded ({why}); write it again as JPEG or PNG, or leave it out.")
    return None


def find_undecodable_record(path: Path, image_feature: str, check: Callable[[], None]) -> DataError | None:
    """Name the first record of a file whose image cannot be decoded; ``check`` raises to end the search."""
    features = {image_feature: tf.io.FixedLenFeature([], tf.string)}
    for number, record in enumerate(tf.data.TFRecordDataset(str(path))):
        check()
        encoded = tf.io.parse_single_example(record, features)[image_feature]
        if (why := _decoding_error(encoded)) is not None:
            return DataError(
                f"The image of record {number} of {path} cannot be decoded ({why}); write it again as JPEG, PNG, GIF or BMP."
            )
    return None


def _decoding_error(encoded: Any) -> str | None:
    """Return why an image cannot be decoded, in TensorFlow's words without its node names."""
    try:
        tf.io.decode_image(encoded, channels=3, expand_animations=False)
    except tf.errors.OpError as error:
        return re.sub(r"\{\{.*?\}\} *| \[Op:.*", "", error.message).rstrip(". ")
    return None


class _LazyImages:
    """Encodes the images when the first file is written, which is not at all if the files are there."""

    def __init__(self, workload: ImagesWorkload) -> None:
        self._workload = workload
        self._images: EncodedImages | None = None

    def write_file(self, path: Path, file_index: int, count: int) -> None:
        images = self._images = self._images or self._make()
        first = sum(self._workload.examples_per_file[:file_index])
        with tf.io.TFRecordWriter(str(path)) as writer:
            for record in range(count):
                index = (first + record) % len(images.jpegs)
                writer.write(_example(images.jpegs[index], images.labels[index], record_id(file_index, record)))

    def _make(self) -> EncodedImages:
        workload = self._workload
        if workload.data == "digits":
            return digit_images(workload.image_size)
        if workload.data == "cifar10":
            return cifar_images(workload.image_size, sum(workload.examples_per_file))
        return random_images(workload.image_size, workload.classes, min(RANDOM_IMAGES, sum(workload.examples_per_file)))


def _encode(images: "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]") -> list[bytes]:
    return [tf.io.encode_jpeg(image).numpy() for image in images]


def _example(jpeg: bytes, label: int, identity: int) -> bytes:
    feature = {
        "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[jpeg])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
        "id": tf.train.Feature(int64_list=tf.train.Int64List(value=[identity])),
    }
    serialized: bytes = tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
    return serialized


STAGE_CHANNELS: Sequence[int] = (16, 32, 64)
KERNEL = 3


def build_network(image_size: int, classes: int) -> Any:
    """Build the network; its output are logits, shape (batch, classes).

    Args:
        image_size: Height and width of the images as they leave the pipeline, pixels.
        classes: Number of labels.
    """
    images = keras.Input((image_size, image_size, 3))
    features = _convolve(images, STAGE_CHANNELS[0], strides=1)
    for stage, channels in enumerate(STAGE_CHANNELS):
        features = _residual_block(features, channels, strides=1 if stage == 0 else 2)
    features = keras.layers.GlobalAveragePooling2D()(features)
    logits = keras.layers.Dense(classes, dtype="float32")(features)
    return keras.Model(images, logits)


def _residual_block(features: Any, channels: int, strides: int) -> Any:
    inner = _convolve(features, channels, strides)
    inner = keras.layers.Conv2D(channels, KERNEL, padding="same", use_bias=False)(inner)
    inner = keras.layers.BatchNormalization()(inner)
    if strides > 1:
        features = keras.layers.Conv2D(channels, 1, strides=strides, use_bias=False)(features)
        features = keras.layers.BatchNormalization()(features)
    return keras.layers.ReLU()(keras.layers.Add()([inner, features]))


def _convolve(features: Any, channels: int, strides: int) -> Any:
    features = keras.layers.Conv2D(channels, KERNEL, strides=strides, padding="same", use_bias=False)(features)
    return keras.layers.ReLU()(keras.layers.BatchNormalization()(features))


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
            first, end = part * examples // many, (part + 1) * examples // many
            share = tf.cast(end - first, tf.float32) / tf.cast(examples, tf.float32)
            with tf.control_dependencies([loss, *gradients]):  # one after another: memory for one at a time
                some_images, some_labels = images[first:end], labels[first:end]
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


class ImagesDataAndStep(DataAndStep[ImagesWorkload]):
    """Digits, photographs or noise that the lab writes, the user's records, or folders of files; a residual network."""

    def find_files(self, log: EventLog, stop: StopRequest) -> list[DataFile]:
        workload = self.workload
        if workload.folder is not None:
            return find_class_folders(workload.folder, IMAGE_ENDINGS, workload.classes, stop)
        return find_user_files(workload.pattern, stop) if workload.pattern else cached_files(self.recipe(), log, stop)

    def recipe(self) -> DataRecipe:
        return images_recipe(self.workload)

    def searches(self) -> tuple[Search, ...]:
        if self.workload.data == "folder":
            return (find_damaged_image,)
        return (self._find_misfit, self._find_undecodable) if self.workload.data == "files" else ()

    def make_trainer(self, options: RunOptions, *, is_gpu: bool, tables: Sequence[DataFile], pipeline: Any) -> Trainer:
        del tables, pipeline
        size = options.elements[-1].image_size
        classes = KNOWN_CLASSES.get(self.workload.data, self.workload.classes)
        return ImageTrainer(options.training, place(options.training.replicas, is_gpu=is_gpu), size, classes)

    def _find_misfit(self, path: Path, check: Callable[[], None]) -> DataError | None:
        image = RecordFeature(self.workload.image_feature, "bytes", 1)
        label = RecordFeature(self.workload.label_feature, "int64", 1)
        remedy = "set workload.image_feature and workload.label_feature to the names in your records"
        return find_misfitting_record(path, (image, label), remedy, check)

    def _find_undecodable(self, path: Path, check: Callable[[], None]) -> DataError | None:
        return find_undecodable_record(path, self.workload.image_feature, check)


DATA_AND_STEP = ImagesDataAndStep
