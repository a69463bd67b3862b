"""Every workload. A new one is imported and listed here; forms, documents and the worker find it by its kind."""

from typing import Annotated, get_args

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

_Any = (
    ImagesWorkload
    | AudioWorkload
    | SparseWorkload
    | FeaturesWorkload
    | RecordsWorkload
    | GeneratorWorkload
    | SyntheticWorkload
    | ModuleWorkload
)

AnyWorkload = Annotated[_Any, Field(discriminator="kind")]
"""What a document names by its ``kind``."""

WORKLOADS: dict[str, type[Workload]] = {each.model_fields["kind"].default: each for each in get_args(_Any)}
"""Every workload by its kind, in the order in which forms offer them."""

FUNCTION_STAGES = frozenset(stage for workload in WORKLOADS.values() for stage in workload.own_stages)
"""Stages that call a function of the workload."""
