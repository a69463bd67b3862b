"""Stages that change elements, keep them, order them or put them together."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline_lab.fields import Autotune, Options, Parallelism


class ParseStage(Options):
    """Turn records into tensors: parse the Example, decode the image. After `batch` it is vectorised."""

    stage: Literal["parse"] = "parse"
    num_parallel_calls: Parallelism = None
    deterministic: bool | None = None


class AugmentStage(Options):
    """Change images at random and scale them to zero mean and unit variance."""

    stage: Literal["augment"] = "augment"
    pad: int = Field(4, ge=0, le=256)
    """Pixels of zeros added on each side before the crop."""
    crop: int | None = Field(None, ge=4, le=1024)
    """Height and width of a random crop; None keeps the stored size."""
    flip: bool = True
    rotate_degrees: float = Field(15.0, ge=0, le=180)
    """Largest random rotation either way, degrees; 0 turns it off."""
    cutout: int = Field(8, ge=0, le=1024)
    """Height and width of a random square set to zero; 0 turns it off."""
    normalise: bool = True
    num_parallel_calls: Parallelism = None
    deterministic: bool | None = None


class ViewsStage(Options):
    """Make several views of each image, random crops and their mirror images; each is an example of its own from then on."""

    stage: Literal["views"] = "views"
    crops: int = Field(5, ge=1, le=100)
    size: int = Field(24, ge=4, le=1024)
    """Height and width of a view, pixels."""
    mirror: bool = True
    """Every crop also as its mirror image, which makes twice as many views."""
    num_parallel_calls: Parallelism = None
    deterministic: bool | None = None

    @property
    def views(self) -> int:
        """Views of one image."""
        return self.crops * (2 if self.mirror else 1)


class MapStage(Options):
    """The synthetic workload's own work on each record (`map_ms`)."""

    stage: Literal["map"] = "map"
    num_parallel_calls: Parallelism = None
    deterministic: bool | None = None


class LookupStage(Options):
    """Put the vector of its image into each caption (features workload). After `batch` it looks up all of a batch at once."""

    stage: Literal["lookup"] = "lookup"
    num_parallel_calls: Parallelism = None
    deterministic: bool | None = None


class CacheStage(Options):
    """Keep elements after the first epoch; everything before this stage then runs once."""

    stage: Literal["cache"] = "cache"
    where: Literal["memory", "file"] = "memory"


class SnapshotStage(Options):
    """Write elements to disk during the first epoch and read them from there in later ones (`snapshot`)."""

    stage: Literal["snapshot"] = "snapshot"
    compression: Literal["auto", "none", "gzip", "snappy"] = "auto"
    """``auto`` leaves it to tf.data, which takes Snappy."""


class SaveStage(Options):
    """Write every element to disk before the first step and read them from there (`save`, `load`)."""

    stage: Literal["save"] = "save"
    compression: Literal["none", "gzip"] = "none"


class ShuffleStage(Options):
    """Draw each element at random from a buffer of the next `buffer_size` ones."""

    stage: Literal["shuffle"] = "shuffle"
    buffer_size: int = Field(1000, ge=1, le=100_000_000)
    """Elements at this place of the pipeline: examples before `batch`, batches after it."""
    reshuffle_each_iteration: bool = True


class RepeatStage(Options):
    """Start over at the end of the data."""

    stage: Literal["repeat"] = "repeat"
    count: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Epochs; None repeats without end."""


class BatchStage(Options):
    """Put consecutive elements together into batches."""

    stage: Literal["batch"] = "batch"
    mode: Literal["batch", "padded_batch", "ragged_batch"] = "batch"
    """``batch`` stacks examples of one length; ``padded_batch`` fills shorter ones up to the longest of the batch;
    ``ragged_batch`` keeps each at its own length."""
    size: int = Field(128, ge=1, le=1_000_000)
    drop_remainder: bool = True
    num_parallel_calls: Parallelism = None
    deterministic: bool | None = None

    @model_validator(mode="after")
    def _fields_fit_mode(self) -> "BatchStage":
        if self.mode != "batch" and self.num_parallel_calls is not None:
            raise ValueError(f"mode = {self.mode} has no num_parallel_calls; remove it")
        return self


class UnbatchStage(Options):
    """Take batches apart into examples again."""

    stage: Literal["unbatch"] = "unbatch"


class RebatchStage(Options):
    """Cut and join batches to another size, the order of the examples unchanged."""

    stage: Literal["rebatch"] = "rebatch"
    size: int = Field(128, ge=1, le=1_000_000)
    drop_remainder: bool = True


class PrefetchStage(Options):
    """Prepare later elements while the current one is used."""

    stage: Literal["prefetch"] = "prefetch"
    buffer_size: Annotated[int, Field(ge=1, le=100_000)] | Autotune = "autotune"
    """Elements at this place of the pipeline: whole batches when it stands last."""


class PrefetchToDeviceStage(Options):
    """Copy later batches to the GPU while the current one is used; without a GPU it prefetches into host memory."""

    stage: Literal["prefetch_to_device"] = "prefetch_to_device"
    buffer_size: int = Field(2, ge=1, le=1000)
    """Batches that wait on the GPU."""
