"""Lines of ``make_dataset`` for stages that let only a part of the data through."""

from typing import TypeAlias

from pipeline_lab.options.part_stages import FilterStage, RandomShardStage, ShardStage, SkipStage, TakeStage
from pipeline_lab.pipeline.code import INDENT, assign_call

PartStage: TypeAlias = TakeStage | SkipStage | ShardStage | RandomShardStage | FilterStage


def part_lines(stage: PartStage) -> list[str]:
    """Write one such stage."""
    if isinstance(stage, TakeStage | SkipStage):
        return [assign_call(f"dataset.{stage.stage}", [str(stage.count)])]
    if isinstance(stage, ShardStage):
        return [assign_call("dataset.shard", [str(stage.num_shards), str(stage.index)])]
    if isinstance(stage, RandomShardStage):
        return _random_shard(stage)
    keep = f"lambda _: tf.random.uniform([]) < {stage.keep_percent / 100!r}"
    return [assign_call("dataset.filter", [keep], "each time others")]


def _random_shard(stage: RandomShardStage) -> list[str]:
    size = stage.shard_size
    shards = f"tf.data.Dataset.range({stage.num_shards}).shuffle({stage.num_shards})"
    return [
        f"{INDENT}shards = {shards}  # a new order each epoch",
        f"{INDENT}whole = dataset",
        assign_call("shards.flat_map", [f"lambda shard: whole.skip(shard * {size}).take({size})"]),
    ]
