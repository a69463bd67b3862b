"""Records of the synthetic workload: eight bytes of id, then filler up to the length that was asked for."""

from pathlib import Path

import tensorflow as tf

from pipeline_lab.options.workload import SyntheticWorkload
from pipeline_lab.worker.data.cache import Recipe
from pipeline_lab.worker.data.record_id import record_id

ID_BYTES = 8


def synthetic_recipe(workload: SyntheticWorkload) -> Recipe:
    """Describe the files of the synthetic workload."""
    filler = bytes(workload.element_bytes - ID_BYTES)

    def write_file(path: Path, file_index: int, count: int) -> None:
        with tf.io.TFRecordWriter(str(path)) as writer:
            for record in range(count):
                writer.write(record_id(file_index, record).to_bytes(ID_BYTES, "little") + filler)

    return Recipe(
        name="synthetic",
        description={"data": "synthetic", "bytes": workload.element_bytes},
        examples_per_file=workload.examples_per_file,
        record_bytes=workload.element_bytes,
        write_file=write_file,
    )
