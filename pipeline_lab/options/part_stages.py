"""Stages that let only a part of the data through."""

from typing import Literal

from pydantic import Field, model_validator

from pipeline_lab.fields import Options


class TakeStage(Options):
    """End the data after so many elements."""

    stage: Literal["take"] = "take"
    count: int = Field(1000, ge=1, le=1_000_000_000)
    """Elements at this place of the pipeline: examples before `batch`, batches after it."""


class SkipStage(Options):
    """Leave out the first elements; they are still read."""

    stage: Literal["skip"] = "skip"
    count: int = Field(100, ge=1, le=1_000_000_000)
    """Elements at this place of the pipeline: examples before `batch`, batches after it."""


class ShardStage(Options):
    """Keep every so many-th element, as each of so many jobs does; all are still read."""

    stage: Literal["shard"] = "shard"
    num_shards: int = Field(2, ge=1, le=100_000)
    index: int = Field(0, ge=0, le=99_999)
    """Which of the shards, counted from 0."""

    @model_validator(mode="after")
    def _index_is_a_shard(self) -> "ShardStage":
        if self.index >= self.num_shards:
            raise ValueError(f"index {self.index} is none of {self.num_shards} shards, counted from 0")
        return self


class RandomShardStage(Options):
    """Visit stretches of the data in a new random order each epoch; all before a stretch is read in vain to reach it."""

    stage: Literal["random_shard"] = "random_shard"
    num_shards: int = Field(8, ge=1, le=100_000)
    """Stretches, one behind the other from the beginning of the data."""
    shard_size: int = Field(512, ge=1, le=100_000_000)
    """Elements in each stretch; what comes after the last stretch is never used."""


class FilterStage(Options):
    """Keep a random part of the elements, each time others."""

    stage: Literal["filter"] = "filter"
    keep_percent: float = Field(50.0, ge=1, le=100)
    """Chance of an element to be kept, percent."""
