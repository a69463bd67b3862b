"""The input pipeline as an ordered list of stages.

Each stage stands for one line (or a few) of tf.data code; :mod:`pipeline_lab.pipeline.source` renders them in the
order given here. Parsing that comes after `batch` is vectorised: it sees a batch of records at once.
"""

from collections.abc import Iterator
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from pipeline_lab.fields import Options
from pipeline_lab.options.bucket_stage import BucketStage
from pipeline_lab.options.part_stages import FilterStage, RandomShardStage, ShardStage, SkipStage, TakeStage
from pipeline_lab.options.read_stage import ReadStage
from pipeline_lab.options.service_stage import ServiceStage
from pipeline_lab.options.stages import (
    AugmentStage,
    BatchStage,
    CacheStage,
    LookupStage,
    MapStage,
    ParseStage,
    PrefetchStage,
    PrefetchToDeviceStage,
    RebatchStage,
    RepeatStage,
    SaveStage,
    ShuffleStage,
    SnapshotStage,
    UnbatchStage,
    ViewsStage,
)

__all__ = [
    "SINGLE_STAGES",
    "STAGE_TYPES",
    "AugmentStage",
    "BatchStage",
    "BucketStage",
    "CacheStage",
    "FilterStage",
    "LookupStage",
    "MapStage",
    "MappingStage",
    "ParseStage",
    "PipelineOptions",
    "PrefetchStage",
    "PrefetchToDeviceStage",
    "RandomShardStage",
    "ReadStage",
    "RebatchStage",
    "RepeatStage",
    "SaveStage",
    "ServiceStage",
    "ShardStage",
    "ShuffleStage",
    "SkipStage",
    "SnapshotStage",
    "Stage",
    "TakeStage",
    "UnbatchStage",
    "ViewsStage",
]

Stage = Annotated[
    ReadStage
    | ParseStage
    | ViewsStage
    | AugmentStage
    | LookupStage
    | MapStage
    | CacheStage
    | SnapshotStage
    | SaveStage
    | ShuffleStage
    | RepeatStage
    | TakeStage
    | SkipStage
    | ShardStage
    | RandomShardStage
    | FilterStage
    | BatchStage
    | BucketStage
    | UnbatchStage
    | RebatchStage
    | ServiceStage
    | PrefetchStage
    | PrefetchToDeviceStage,
    Field(discriminator="stage"),
]

MappingStage: TypeAlias = ParseStage | ViewsStage | AugmentStage | LookupStage | MapStage
"""Stages that call a function of the workload for each element."""

STAGE_TYPES: dict[str, type[Options]] = {
    kind.model_fields["stage"].default: kind
    for kind in (
        ReadStage,
        ParseStage,
        ViewsStage,
        AugmentStage,
        LookupStage,
        MapStage,
        CacheStage,
        SnapshotStage,
        SaveStage,
        ShuffleStage,
        RepeatStage,
        TakeStage,
        SkipStage,
        ShardStage,
        RandomShardStage,
        FilterStage,
        BatchStage,
        BucketStage,
        UnbatchStage,
        RebatchStage,
        ServiceStage,
        PrefetchStage,
        PrefetchToDeviceStage,
    )
}
"""Every stage by its name, in the order in which forms offer them."""

SINGLE_STAGES = ("read", "parse", "views", "augment", "lookup", "map", "service", "prefetch_to_device")
"""Stages that a pipeline has once at most."""


class PipelineOptions(Options):
    """Ordered stages, and the ``tf.data.Options`` around them."""

    stages: tuple[Stage, ...] = Field((), max_length=40)
    """Empty where the dataset comes from a module of the user's."""
    private_threadpool_size: int | None = Field(None, ge=1, le=1024)
    """Threads that run user functions; None leaves tf.data's default, the number of cores."""
    tensorflow_rewrites: bool = True
    """Let TensorFlow parallelise maps, fuse stages and inject a prefetch; off runs the pipeline just as written."""
    autotune_algorithm: Literal["max_parallelism", "hill_climb", "gradient_descent", "stage_based"] | None = None
    """How AUTOTUNE looks for parallelism and buffer sizes; None leaves it to tf.data."""
    autotune_cpu_budget: int | None = Field(None, ge=1, le=1024)
    """Cores that AUTOTUNE may plan with; None for all."""
    autotune_ram_budget_mb: int | None = Field(None, ge=1, le=10_000_000)
    """Memory that AUTOTUNE may fill with buffers, MB; None for tf.data's default, half of what is free."""
    deterministic: bool | None = None
    """Keep the order in parallel stages that do not say it themselves; None leaves tf.data's default, which keeps it."""
    slack: bool = False
    """Begin the final prefetch a little later, so that it does not disturb the start of the step."""
    warm_start: bool = False
    """Start background threads when the iterator is made, not at its first batch."""

    @model_validator(mode="after")
    def _order_makes_sense(self) -> "PipelineOptions":
        kinds: list[str] = [stage.stage for stage in self.stages]
        if not kinds:
            return self
        if kinds[0] != "read":
            raise ValueError("the first stage must be read")
        for kind in SINGLE_STAGES:
            if kinds.count(kind) > 1:
                raise ValueError(f"{kind} may occur only once, but occurs {kinds.count(kind)} times")
        if not any(isinstance(stage, BatchStage | BucketStage) for stage in self.stages):
            raise ValueError("a batch stage is missing; the training step takes batches")
        if "prefetch_to_device" in kinds[:-1]:
            raise ValueError("nothing may come after prefetch_to_device; put it last")
        if "save" in kinds and any(_is_endless(stage) for stage in self.stages[: kinds.index("save")]):
            raise ValueError("save would write for ever behind an endless repeat; put it before repeat")
        self._check_images(kinds)
        self._check_batches()
        self._check_service()
        return self

    def _check_images(self, kinds: list[str]) -> None:
        for kind in ("augment", "views"):
            if kind in kinds and "parse" in kinds[kinds.index(kind) :]:
                raise ValueError(f"{kind} needs decoded images; put parse before it")
        if self.is_vectorised("views"):
            raise ValueError("views makes examples out of single images; put it before batch")

    def _check_service(self) -> None:
        service, read = self.find("service"), self.stages[0]
        if not isinstance(service, ServiceStage) or service.sharding == "off":
            return
        if isinstance(read, ReadStage) and read.mode == "sample":
            raise ValueError(
                f"a service cannot divide files that are sampled; set sharding = off instead of {service.sharding}, or read "
                "in another mode"
            )

    def _check_batches(self) -> None:
        size = None
        for stage, behind in zip(self.stages, self.batch_sizes, strict=True):
            if isinstance(stage, BatchStage | BucketStage) and size is not None:
                raise ValueError(
                    f"{stage.stage} takes examples, and batches come; use rebatch for another size, or put unbatch between"
                )
            if isinstance(stage, UnbatchStage | RebatchStage) and size is None:
                raise ValueError(f"{stage.stage} takes batches; put batch before it")
            size = behind
        if size is None:
            raise ValueError("a batch stage is missing behind unbatch; the training step takes batches")

    def find(self, stage: str) -> Options | None:
        """Return the first stage of that name, or None."""
        return next((found for found in self.stages if found.stage == stage), None)

    @property
    def views(self) -> int:
        """Examples that become of one record."""
        stage = self.find("views")
        return stage.views if isinstance(stage, ViewsStage) else 1

    def is_vectorised(self, stage: str) -> bool:
        """Say whether a stage sees whole batches because it comes after ``batch``."""
        return any(
            found.stage == stage and size is not None for found, size in zip(self.stages, self.batch_sizes, strict=True)
        )

    @property
    def batch_sizes(self) -> tuple[int | None, ...]:
        """Examples in one element behind each stage, about so many behind buckets; None where elements are single ones."""
        return tuple(self._batch_sizes())

    @property
    def batch_size(self) -> int:
        size = self.batch_sizes[-1]
        assert size is not None
        return size

    def _batch_sizes(self) -> Iterator[int | None]:
        size = None
        for stage in self.stages:
            if isinstance(stage, BatchStage | BucketStage | RebatchStage):
                size = stage.size
            elif isinstance(stage, UnbatchStage):
                size = None
            yield size


def _is_endless(stage: Stage) -> bool:
    return isinstance(stage, RepeatStage) and stage.count is None
