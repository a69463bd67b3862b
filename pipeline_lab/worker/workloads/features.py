"""Data and step of the features workload: captions in records, and the vector of each image in every record or once
in a table.

What an image is like, its vector and the words that captions of it use, follows from its number alone, so that every
layout holds the same data. One caption in two is that of another image; the label says which.

The step asks whether the caption fits the image: both become short vectors, whose product is the score.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.worker.job_context import StopRequest
from pipeline_lab.worker.train.placement import compile_step
from pipeline_lab.worker.train.training_steps import Batch, OneDeviceTrainer, Trainer
from pipeline_lab.worker.workloads.data_and_step import DataAndStep
from pipeline_lab.worker.workloads.data_files import DataRecipe, record_id
from pipeline_lab.workloads.features import FeaturesWorkload

WORDS_OF_AN_IMAGE = 16
EXAMPLE_BYTES = 96
WORD_BYTES = 2
ROWS_BETWEEN_CHECKS = 4096
_VECTOR, _WORDS, _CAPTION = range(3)
"""What a random number is for; no two uses share a stream."""


def features_recipe(workload: FeaturesWorkload) -> DataRecipe:
    """Describe the files, and the tables where the layout has them."""
    is_replicated = workload.layout == "replicated"

    def write_file(path: Path, file_index: int, count: int) -> None:
        first = sum(workload.examples_per_file[:file_index])
        with tf.io.TFRecordWriter(str(path)) as writer:
            for record in range(count):
                writer.write(_example(workload, first + record, record_id(file_index, record)))

    def write_tables(folder: Path, stop: StopRequest) -> None:
        for path, images in zip(table_paths(workload, folder), _rows_of_tables(workload), strict=True):
            _write_table(path, images, workload.vector_size, stop)

    return DataRecipe(
        name="captions",
        description={
            "data": "features",
            "images": workload.images,
            "vector": workload.vector_size,
            "words": workload.caption_words,
            "vocabulary": workload.vocabulary_size,
            "tables": len(table_names(workload)),
        },
        examples_per_file=workload.examples_per_file,
        record_bytes=workload.vector_bytes * is_replicated + WORD_BYTES * workload.caption_words + EXAMPLE_BYTES,
        write_file=write_file,
        write_tables=write_tables,
        tables_bytes=0 if is_replicated else workload.table_bytes,
    )


def table_names(workload: FeaturesWorkload) -> tuple[str, ...]:
    """Return the names of the tables next to the files."""
    if workload.layout == "replicated":
        return ()
    if workload.layout != "sharded":
        return ("vectors.npy",)
    return tuple(f"vectors-{part:05d}-of-{workload.table_shards:05d}.npy" for part in range(workload.table_shards))


def table_paths(workload: FeaturesWorkload, folder: Path) -> list[Path]:
    return [folder / name for name in table_names(workload)]


def find_tables(workload: FeaturesWorkload, folder: Path) -> list[DataFile]:
    """Return the tables next to the files, their rows as records."""
    pairs = zip(table_paths(workload, folder), _rows_of_tables(workload), strict=True)
    return [DataFile(str(path), len(images), path.stat().st_size) for path, images in pairs]


def vector_of(image: int, size: int) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
    """Return the vector of an image, shape (size,)."""
    return np.random.default_rng([_VECTOR, image]).standard_normal(size, np.float32)


def _rows_of_tables(workload: FeaturesWorkload) -> list[range]:
    """Return which images each table holds; the first tables hold one more where they do not divide evenly."""
    parts = len(table_names(workload))
    if not parts:
        return []
    size, larger = divmod(workload.images, parts)
    ends = [(part + 1) * size + min(part + 1, larger) for part in range(parts)]
    return [range(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def _write_table(path: Path, images: range, size: int, stop: StopRequest) -> None:
    table = np.lib.format.open_memmap(path, "w+", np.float32, (len(images), size))
    for row, image in enumerate(images):
        if row % ROWS_BETWEEN_CHECKS == 0:
            stop.check()
        table[row] = vector_of(image, size)
    table.flush()


def _example(workload: FeaturesWorkload, caption: int, identity: int) -> bytes:
    """Write one caption; its image follows from its number, so that captions of one image are far apart."""
    image = caption % workload.images
    rng = np.random.default_rng([_CAPTION, caption])
    fits = bool(rng.integers(2)) or workload.images == 1
    described = image if fits else (image + int(rng.integers(1, workload.images))) % workload.images
    words = np.random.default_rng([_WORDS, described]).integers(0, workload.vocabulary_size, WORDS_OF_AN_IMAGE)
    feature = {
        "caption": _integers(rng.choice(words, workload.caption_words).tolist()),
        "label": _integers([int(fits)]),
        "id": _integers([identity]),
    }
    if workload.layout == "replicated":
        vector = vector_of(image, workload.vector_size)
        feature["vector"] = tf.train.Feature(float_list=tf.train.FloatList(value=vector))
    else:
        feature["image"] = _integers([image])
    serialized: bytes = tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
    return serialized


def _integers(values: list[int]) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


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
        self._train, self._judge = compile_step(self._train_on), compile_step(self._judge_on)

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


class FeaturesDataAndStep(DataAndStep[FeaturesWorkload]):
    """Captions, and the table of their images' vectors; a score for each pair."""

    def recipe(self) -> DataRecipe:
        return features_recipe(self.workload)

    def find_tables(self, folder: Path) -> list[DataFile]:
        return find_tables(self.workload, folder)

    def make_trainer(self, options: RunOptions, *, is_gpu: bool, tables: Sequence[DataFile], pipeline: Any) -> Trainer:
        del is_gpu, pipeline
        return FeaturesTrainer(self.workload, options, tables)


DATA_AND_STEP = FeaturesDataAndStep
