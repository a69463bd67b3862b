"""Sparse features, as recommenders and click models have them: a record becomes one sparse tensor per feature, a
label and an id.
"""

from typing import ClassVar, Literal

from pydantic import Field

from pipeline_lab.fields import FileSizes
from pipeline_lab.stages.code import Code
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import PerFile, read_lines
from pipeline_lab.stages.stage_values import LABEL_AND_ID_BYTES
from pipeline_lab.workloads.workload import ID_BYTES, RECORD_FRAME_BYTES, Workload, WorkloadSource


class SparseWorkload(Workload):
    """Train on sparse features, as recommenders and click models do; with `training.replicas` on several devices."""

    kind: Literal["sparse"] = "sparse"
    examples_per_file: FileSizes = (2000,) * 4
    features: int = Field(17, ge=1, le=1000)
    """Sparse features of an example; each crosses from tf.data to the step on its own."""
    values_per_feature: int = Field(8, ge=1, le=10_000)
    """Values of a feature in an example, on average; from one to twice as many less one."""
    vocabulary_size: int = Field(10_000, ge=2, le=10_000_000)
    """Different values of a feature."""
    embedding_size: int = Field(16, ge=1, le=4096)
    """Length of the vector that stands for a value; the tables stay on the host and are not trained."""

    own_stages: ClassVar = ("parse",)
    step_options: ClassVar = frozenset({"replicas"})

    def source(self, pipeline: PipelineOptions, *, has_probe: bool) -> WorkloadSource:
        constants = (
            "FEATURES = {",
            f'    **{{f"feature_{{number}}": tf.io.VarLenFeature(tf.int64) for number in range({self.features})}},',
            '    "label": tf.io.FixedLenFeature([], tf.int64),',
            '    "id": tf.io.FixedLenFeature([], tf.int64),',
            "}",
        )
        parse = (_PARSE_BATCH if pipeline.is_vectorized("parse") else _PARSE).strip()
        return WorkloadSource(
            about=(f"Elements are batches of {self.features} sparse features, a label and an id.",),
            code=Code(constants=constants, functions=(parse,)),
            written={"read": lambda read: read_lines(read, PerFile.PLAIN)},
        )

    @property
    def file_sizes(self) -> tuple[int, ...]:
        return self.examples_per_file

    @property
    def record_bytes(self) -> int:
        return self.features * (self.values_per_feature * ID_BYTES + RECORD_FRAME_BYTES) + LABEL_AND_ID_BYTES


_PARSE = '''
def parse(record: tf.Tensor) -> dict[str, tf.Tensor | tf.SparseTensor]:
    """Read one Example; each feature holds the values that it has, however many."""
    return tf.io.parse_single_example(record, FEATURES)
'''

_PARSE_BATCH = '''
def parse(records: tf.Tensor) -> dict[str, tf.Tensor | tf.SparseTensor]:
    """Read a batch of Examples; each feature holds the values that it has, however many."""
    return tf.io.parse_example(records, FEATURES)
'''
