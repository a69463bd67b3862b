"""How many examples each stage has to hand on for one batch: more than a batch where later stages leave some out."""

import math

from pipeline_lab.options.part_stages import FilterStage, RandomShardStage, ShardStage, SkipStage
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.stages import ViewsStage


def examples_behind(options: RunOptions) -> tuple[float, ...]:
    """Return the examples that each stage hands on for one batch, in the steady part of a run.

    A ``skip`` before an endless repeat reads what it leaves out once for each pass; where the records are not known,
    that is left out.
    """
    stages = options.pipeline.stages
    behind = [0.0] * len(stages)
    examples = float(options.pipeline.batch_size)
    for index in range(len(stages) - 1, -1, -1):
        behind[index] = examples
        examples *= _asked_for_each(options, index)
    return tuple(behind)


def _asked_for_each(options: RunOptions, index: int) -> float:
    """Return the examples that a stage takes for each one that it hands on."""
    stage = options.pipeline.stages[index]
    if isinstance(stage, FilterStage):
        return 100.0 / stage.keep_percent
    if isinstance(stage, ShardStage):
        return float(stage.num_shards)
    if isinstance(stage, RandomShardStage):
        return 1.0 + (stage.num_shards - 1) / 2.0  # all before a stretch is read to reach it
    if isinstance(stage, ViewsStage):
        return 1.0 / stage.views
    if isinstance(stage, SkipStage) and (amounts := options.amounts) is not None:
        before, after = amounts[index - 1].elements, amounts[index].elements
        return before / after if math.isfinite(before) and after else 1.0
    return 1.0
