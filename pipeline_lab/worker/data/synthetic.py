"""Records of the synthetic workload: eight bytes of id, then filler up to the length that was asked for."""

from pathlib import Path

import numpy as np
import tensorflow as tf

from pipeline_lab.worker.data.cache import Recipe
from pipeline_lab.worker.data.record_id import record_id
from pipeline_lab.workloads.synthetic import SyntheticWorkload

ID_BYTES = 8


def synthetic_recipe(workload: SyntheticWorkload) -> Recipe:
    """Describe the files of the synthetic workload."""
    filler = bytes(workload.element_bytes - ID_BYTES)

    def write_file(path: Path, file_index: int, count: int) -> None:
        lengths = _filler_lengths(workload, file_index, count)
        with tf.io.TFRecordWriter(str(path)) as writer:
            for record, length in enumerate(lengths):
                writer.write(record_id(file_index, record).to_bytes(ID_BYTES, "little") + filler[:length])

    return Recipe(
        name="synthetic",
        description={
            "data": "synthetic",
            "bytes": workload.element_bytes,
            **({"lengths": "varied"} if workload.varied_lengths else {}),
        },
        examples_per_file=workload.examples_per_file,
        record_bytes=workload.element_bytes,
        write_file=write_file,
    )


def _filler_lengths(workload: SyntheticWorkload, file_index: int, count: int) -> list[int]:
    """Return the bytes behind each record's id: all alike, or from half of them to all."""
    longest = workload.element_bytes - ID_BYTES
    if not workload.varied_lengths:
        return [longest] * count
    drawn: list[int] = np.random.default_rng(file_index).integers(longest // 2, longest + 1, count).tolist()
    return drawn
