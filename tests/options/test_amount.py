"""What each stage lets through; every number can be counted by hand."""

import math

import pytest

from pipeline_lab.stages.batches import BatchStage, RebatchStage, UnbatchStage
from pipeline_lab.stages.functions import ParseStage, ViewsStage
from pipeline_lab.stages.order import RepeatStage
from pipeline_lab.stages.parts import FilterStage, RandomShardStage, ShardStage, SkipStage, TakeStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stage import Stage
from pipeline_lab.stages.stage_values import Amount

ENDLESS = Amount(math.inf, math.inf)


@pytest.mark.parametrize(
    ("stages", "last"),
    [
        ((ReadStage(),), Amount(25, 25)),
        ((ReadStage(num_shards=2, shard_index=1),), Amount(10, 10)),
        ((ReadStage(), TakeStage(count=7)), Amount(7, 7)),
        ((ReadStage(), SkipStage(count=7)), Amount(18, 18)),
        ((ReadStage(), ShardStage(num_shards=4, index=0)), Amount(7, 7)),  # 0, 4, …, 24
        ((ReadStage(), ShardStage(num_shards=4, index=1)), Amount(6, 6)),
        ((ReadStage(), RandomShardStage(num_shards=2, shard_size=10)), Amount(20, 20)),
        ((ReadStage(), FilterStage(keep_percent=40)), Amount(10, 10)),
        ((ReadStage(), RepeatStage(count=3)), Amount(75, 75)),
        ((ReadStage(), TakeStage(count=3), ParseStage(), ViewsStage(crops=2)), Amount(12, 12)),
        ((ReadStage(), RepeatStage()), ENDLESS),
        ((ReadStage(), RepeatStage(), ShardStage()), ENDLESS),
        ((ReadStage(), RepeatStage(), TakeStage(count=30)), Amount(30, 30)),
        ((ReadStage(), BatchStage(size=10)), Amount(2, 20)),
        ((ReadStage(), BatchStage(size=10, drop_remainder=False)), Amount(3, 25)),
        ((ReadStage(), BatchStage(size=10, drop_remainder=False), TakeStage(count=2)), Amount(2, 20)),
        ((ReadStage(), BatchStage(size=10), UnbatchStage()), Amount(20, 20)),
        ((ReadStage(), BatchStage(size=10), RebatchStage(size=3)), Amount(6, 18)),
    ],
    ids=lambda value: "-".join(stage.stage for stage in value) if isinstance(value, tuple) else "",
)
def test_amounts(stages: tuple[Stage, ...], last: Amount) -> None:
    pipeline = PipelineOptions.model_construct(stages=stages)  # without the batch that a whole one ends with
    assert pipeline.amounts((8, 10, 7))[-1] == last
