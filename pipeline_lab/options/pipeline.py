"""The input pipeline as an ordered list of stages.

Each stage stands for one line (or a few) of tf.data code; :mod:`pipeline_lab.pipeline.source` renders them in the
order given here. Parsing that comes after `batch` is vectorised: it sees a batch of records at once.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline_lab.options.base import Autotune, Options, Parallelism


class ReadStage(Options):
    """Open the files and yield their records."""

    stage: Literal["read"] = "read"
    mode: Literal["sequential", "parallel_reads", "interleave", "sample"] = "sequential"
    """``sequential``: one file after the other; ``parallel_reads``: ``TFRecordDataset(num_parallel_reads=…)``;
    ``sample``: each record from a file drawn at random (``sample_from_datasets``)."""
    shuffle_files: bool = False
    """Visit the files in a new random order each epoch."""
    cycle_length: Annotated[int, Field(ge=1, le=1024)] | None = None
    """interleave: files open at once; None leaves it to tf.data."""
    block_length: int = Field(1, ge=1, le=1_000_000)
    """interleave: records taken from one file before the next."""
    num_parallel_calls: Parallelism = None
    """interleave and parallel_reads: files read at the same time."""
    deterministic: bool | None = None
    """interleave: keep the order even if a later file is ready first; None leaves it to the global option."""
    weights: Literal["size", "uniform"] = "size"
    """sample: draw files by their length in bytes, or all equally often."""

    @model_validator(mode="after")
    def _fields_fit_mode(self) -> "ReadStage":
        if self.mode != "interleave":
            for name in ("cycle_length", "block_length", "deterministic"):
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise ValueError(f"{name} only applies to mode = interleave, not to {self.mode}; remove it")
        if self.mode != "sample" and self.weights != "size":
            raise ValueError(f"weights only applies to mode = sample, not to {self.mode}; remove it")
        if self.mode in ("sequential", "sample") and self.num_parallel_calls is not None:
            raise ValueError(f"mode = {self.mode} has no num_parallel_calls; choose parallel_reads or interleave")
        if self.mode == "sample" and self.shuffle_files:
            raise ValueError("mode = sample draws from all files at once, so shuffle_files changes nothing; remove it")
        if self.mode == "parallel_reads" and self.num_parallel_calls is None:
            raise ValueError("parallel_reads needs num_parallel_calls: a number or autotune")
        return self


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


class MapStage(Options):
    """The synthetic workload's own work on each record (`map_ms`)."""

    stage: Literal["map"] = "map"
    num_parallel_calls: Parallelism = None
    deterministic: bool | None = None


class CacheStage(Options):
    """Keep elements after the first epoch; everything before this stage then runs once."""

    stage: Literal["cache"] = "cache"
    where: Literal["memory", "file"] = "memory"


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
    """Stack consecutive elements into batches."""

    stage: Literal["batch"] = "batch"
    size: int = Field(128, ge=1, le=1_000_000)
    drop_remainder: bool = True
    num_parallel_calls: Parallelism = None
    deterministic: bool | None = None


class PrefetchStage(Options):
    """Prepare later elements while the current one is used."""

    stage: Literal["prefetch"] = "prefetch"
    buffer_size: Annotated[int, Field(ge=1, le=100_000)] | Autotune = "autotune"
    """Elements at this place of the pipeline: whole batches when it stands last."""


Stage = Annotated[
    ReadStage
    | ParseStage
    | AugmentStage
    | MapStage
    | CacheStage
    | ShuffleStage
    | RepeatStage
    | BatchStage
    | PrefetchStage,
    Field(discriminator="stage"),
]

STAGE_TYPES: dict[str, type[Options]] = {
    kind.model_fields["stage"].default: kind
    for kind in (
        ReadStage,
        ParseStage,
        AugmentStage,
        MapStage,
        CacheStage,
        ShuffleStage,
        RepeatStage,
        BatchStage,
        PrefetchStage,
    )
}
"""Every stage by its name, in the order in which forms offer them."""


class PipelineOptions(Options):
    """Ordered stages, and the ``tf.data.Options`` around them."""

    stages: tuple[Stage, ...] = Field(min_length=2, max_length=40)
    private_threadpool_size: int | None = Field(None, ge=1, le=1024)
    """Threads that run user functions; None leaves tf.data's default, the number of cores."""
    tensorflow_rewrites: bool = True
    """Let TensorFlow parallelise maps, fuse stages and inject a prefetch; off runs the pipeline just as written."""

    @model_validator(mode="after")
    def _order_makes_sense(self) -> "PipelineOptions":
        kinds = [stage.stage for stage in self.stages]
        if kinds[0] != "read":
            raise ValueError("the first stage must be read")
        for kind in ("read", "parse", "augment", "map", "batch"):
            if kinds.count(kind) > 1:
                raise ValueError(f"{kind} may occur only once, but occurs {kinds.count(kind)} times")
        if "batch" not in kinds:
            raise ValueError("a batch stage is missing; the training step takes batches")
        if "augment" in kinds and "parse" in kinds[kinds.index("augment") :]:
            raise ValueError("augment needs decoded images; put parse before it")
        return self

    def find(self, stage: str) -> Options | None:
        """Return the first stage of that name, or None."""
        return next((found for found in self.stages if found.stage == stage), None)

    @property
    def batch_size(self) -> int:
        batch = self.find("batch")
        assert isinstance(batch, BatchStage)
        return batch.size
