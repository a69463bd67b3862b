"""Records of the sparse workload: an Example with a list of integers per feature, a label and an id."""

from pathlib import Path

import numpy as np
import tensorflow as tf

from pipeline_lab.worker.data.cache import Recipe
from pipeline_lab.worker.data.record_id import record_id
from pipeline_lab.workloads.sparse import SparseWorkload

VALUE_BYTES = 3
FEATURE_BYTES = 24
EXAMPLE_BYTES = 48


def sparse_recipe(workload: SparseWorkload) -> Recipe:
    """Describe the files of the sparse workload."""

    def write_file(path: Path, file_index: int, count: int) -> None:
        generator = np.random.default_rng(file_index)
        with tf.io.TFRecordWriter(str(path)) as writer:
            for record in range(count):
                writer.write(_example(workload, generator, record_id(file_index, record)))

    feature_bytes = FEATURE_BYTES + VALUE_BYTES * workload.values_per_feature
    return Recipe(
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
    serialised: bytes = tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
    return serialised


def _integers(values: list[int]) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
