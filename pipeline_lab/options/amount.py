"""How much data is left behind each stage of a pipeline, in one pass over it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline_lab.options.bucket_stage import BucketStage
from pipeline_lab.options.part_stages import FilterStage, RandomShardStage, ShardStage, SkipStage, TakeStage
from pipeline_lab.options.pipeline import PipelineOptions, Stage
from pipeline_lab.options.read_stage import ReadStage
from pipeline_lab.options.stages import BatchStage, RebatchStage, RepeatStage, UnbatchStage, ViewsStage


@dataclass(frozen=True)
class Amount:
    """What comes out of a stage.

    Attributes:
        elements: Examples, or batches behind ``batch``; infinite behind an endless repeat.
        examples: Examples in all of them.
    """

    elements: float
    examples: float

    @property
    def is_endless(self) -> bool:
        return math.isinf(self.elements)


def amounts_behind(pipeline: PipelineOptions, file_sizes: Sequence[int]) -> tuple[Amount, ...]:
    """Count what each stage hands on, a filter's share as expected.

    Args:
        pipeline: The stages.
        file_sizes: Records of each file.
    """
    return tuple(_walk(pipeline, file_sizes))


def _walk(pipeline: PipelineOptions, file_sizes: Sequence[int]) -> Iterator[Amount]:
    amount = Amount(0, 0)
    for stage, size in zip(pipeline.stages, pipeline.batch_sizes, strict=True):
        if isinstance(stage, ReadStage):
            records = sum(file_sizes[stage.shard_index :: stage.num_shards])
            amount = Amount(records, records)
        elif isinstance(stage, RepeatStage):
            count = math.inf if stage.count is None else stage.count
            amount = Amount(amount.elements * count, amount.examples * count) if amount.elements else amount
        elif isinstance(stage, BatchStage | BucketStage | RebatchStage):
            amount = _batched(amount.examples, stage)
        elif isinstance(stage, UnbatchStage):
            amount = Amount(amount.examples, amount.examples)
        elif isinstance(stage, ViewsStage):
            amount = Amount(amount.elements * stage.views, amount.examples * stage.views)
        else:
            amount = _part(amount, _left_by(stage, amount.elements), size or 1)
        yield amount


def _batched(examples: float, stage: BatchStage | BucketStage | RebatchStage) -> Amount:
    if math.isinf(examples):
        return Amount(examples, examples)
    full = examples // stage.size
    if stage.drop_remainder:
        return Amount(full, full * stage.size)
    return Amount(-(-examples // stage.size), examples)


def _left_by(stage: Stage, elements: float) -> float:
    """Return how many of the elements a stage lets through."""
    if isinstance(stage, TakeStage):
        return min(elements, stage.count)
    if isinstance(stage, SkipStage):
        return max(0, elements - stage.count)
    if isinstance(stage, RandomShardStage):
        return min(elements, stage.num_shards * stage.shard_size)
    if math.isinf(elements):
        return elements
    if isinstance(stage, ShardStage):
        return max(0, -(-(elements - stage.index) // stage.num_shards))
    if isinstance(stage, FilterStage):
        return round(elements * stage.keep_percent / 100)
    return elements


def _part(amount: Amount, elements: float, size: int) -> Amount:
    if elements == amount.elements:
        return amount
    return Amount(elements, min(amount.examples, elements * size))
