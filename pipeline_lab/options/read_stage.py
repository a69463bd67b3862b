"""The first stage: how the files are opened and in which turns their records come."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline_lab.fields import Options, Parallelism


class ReadStage(Options):
    """Open the files and yield their records."""

    stage: Literal["read"] = "read"
    mode: Literal["sequential", "flat_map", "map", "parallel_reads", "interleave", "sample"] = "sequential"
    """``sequential``: one file after the other, ``TFRecordDataset(files)``; ``flat_map``: the same, a dataset for each
    file; ``map``: the same, as a dataset of datasets that is flattened; ``parallel_reads``:
    ``TFRecordDataset(num_parallel_reads=…)``; ``sample``: each record from a file drawn at random
    (``sample_from_datasets``)."""
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
    num_shards: int = Field(1, ge=1, le=10_000)
    """Read only every so many-th file, as each of so many jobs does; 1 reads all."""
    shard_index: int = Field(0, ge=0, le=9_999)
    """Which of the shards, counted from 0."""

    @model_validator(mode="after")
    def _fields_fit_mode(self) -> "ReadStage":
        if self.mode != "interleave":
            for name in ("cycle_length", "block_length", "deterministic"):
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise ValueError(f"{name} only applies to mode = interleave, not to {self.mode}; remove it")
        if self.mode != "sample" and self.weights != "size":
            raise ValueError(f"weights only applies to mode = sample, not to {self.mode}; remove it")
        if self.mode not in ("parallel_reads", "interleave") and self.num_parallel_calls is not None:
            raise ValueError(f"mode = {self.mode} has no num_parallel_calls; choose parallel_reads or interleave")
        if self.mode == "sample" and self.shuffle_files:
            raise ValueError("mode = sample draws from all files at once, so shuffle_files changes nothing; remove it")
        if self.mode == "parallel_reads" and self.num_parallel_calls is None:
            raise ValueError("parallel_reads needs num_parallel_calls: a number or autotune")
        if self.shard_index >= self.num_shards:
            raise ValueError(f"shard_index {self.shard_index} is none of {self.num_shards} shards, counted from 0")
        if self.mode == "sample" and self.num_shards > 1:
            raise ValueError("mode = sample draws from all files; remove num_shards, or put a shard stage behind it")
        return self

    @property
    def is_in_order(self) -> bool:
        """Say whether one file is read after the other."""
        return self.mode in ("sequential", "flat_map", "map")
