"""Sparse features, as recommenders and click models have them."""

from typing import ClassVar, Literal

from pydantic import Field

from pipeline_lab.fields import FileSizes
from pipeline_lab.stages.stage import LABEL_AND_ID_BYTES
from pipeline_lab.workloads.workload import ID_BYTES, RECORD_FRAME_BYTES, Workload


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

    @property
    def file_sizes(self) -> tuple[int, ...]:
        return self.examples_per_file

    @property
    def record_bytes(self) -> int:
        return self.features * (self.values_per_feature * ID_BYTES + RECORD_FRAME_BYTES) + LABEL_AND_ID_BYTES
