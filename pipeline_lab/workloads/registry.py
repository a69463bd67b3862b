"""Every workload. A new one is imported and listed here; forms, documents and the worker find it by its kind."""

from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from pipeline_lab.workloads.audio import AudioWorkload
from pipeline_lab.workloads.features import FeaturesWorkload
from pipeline_lab.workloads.generator import GeneratorWorkload
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.module import ModuleWorkload
from pipeline_lab.workloads.records import RecordsWorkload
from pipeline_lab.workloads.sparse import SparseWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload
from pipeline_lab.workloads.workload import Workload

DECLARED: tuple[type[Workload], ...] = (
    ImagesWorkload,
    AudioWorkload,
    SparseWorkload,
    FeaturesWorkload,
    RecordsWorkload,
    GeneratorWorkload,
    SyntheticWorkload,
    ModuleWorkload,
)
"""In the order in which forms offer them."""

WORKLOADS: dict[str, type[Workload]] = {each.model_fields["kind"].default: each for each in DECLARED}
"""Every workload by its kind."""

if TYPE_CHECKING:
    AnyWorkload = Workload
else:
    AnyWorkload = Annotated[Union[DECLARED], Field(discriminator="kind")]  # noqa: UP007 (made of a list)
"""A workload in a document, known by its kind."""

FUNCTION_STAGES = frozenset(stage for workload in DECLARED for stage in workload.own_stages)
"""Stages that call a function of the workload."""
