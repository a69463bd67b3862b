"""What a pipeline will hold in memory: caches, shuffle buffers, and what stages make ahead."""

import math

from pipeline_lab.advice.measured import Measured
from pipeline_lab.advice.running import running_stages
from pipeline_lab.errors import Unavailable
from pipeline_lab.options.amount import Amount, amounts_behind
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.stages import CacheStage, RepeatStage, ShuffleStage
from pipeline_lab.pipeline.element_size import elements_behind
from pipeline_lab.workloads.registry import FUNCTION_STAGES

TRANSFORMS = FUNCTION_STAGES | {"read"}
"""Stages behind which an example has another size."""
NO_SIZE = "The size of an example is not known where {stage} stands; record a run to have it measured."
NO_RECORDS = (
    "The records of an epoch were not counted, so the size of the cache is not known; let a run count its samples."
)
ENDLESS = "The cache stands behind an endless repeat: it is never full and takes all memory that there is."


def memory_bytes(options: RunOptions, measured: Measured) -> int | Unavailable:
    """Return what caches and buffers hold once they are full, bytes.

    Args:
        options: The options to look at.
        measured: For the sizes of examples, and the records of an epoch.
    """
    sizes, total = example_bytes(options, measured), 0.0
    for stage in running_stages(options, measured.machine):
        held = stage.held_examples
        if isinstance(stage.stage, ShuffleStage):
            held = stage.stage.buffer_size * (options.pipeline.batch_sizes[stage.index] or 1)
            held = min(held, measured.records or held)
        elif isinstance(stage.stage, CacheStage) and stage.stage.where == "memory":
            if _is_endless(options, stage.index):
                return Unavailable(ENDLESS)
            amount = amount_behind(options, measured, stage.index)
            if amount is None:
                return Unavailable(NO_RECORDS)
            held = amount.examples
        if stage.is_skipped and not isinstance(stage.stage, CacheStage):
            continue
        size = sizes[stage.index]
        if held and size is None:
            return Unavailable(NO_SIZE.format(stage=stage.stage.stage))
        total += held * (size or 0.0)
    return math.ceil(total)


def example_bytes(options: RunOptions, measured: Measured) -> tuple[float | None, ...]:
    """Return the size of one example behind each stage, as it was measured where the run had that stage."""
    seen = {cost.stage: cost.bytes_per_example for cost in measured.stages if cost.stage in TRANSFORMS}
    sizes: list[float | None] = []
    for stage, element in zip(options.pipeline.stages, elements_behind(options), strict=True):
        if stage.stage in TRANSFORMS:
            known = seen.get(stage.stage)
            sizes.append(float(element.example_bytes) if known is None and element.example_bytes else known)
        else:
            sizes.append(sizes[-1])
    return tuple(sizes)


def amount_behind(options: RunOptions, measured: Measured, index: int) -> Amount | None:
    """Return what comes out of a stage in one pass over the data, None if nobody counted the records."""
    amounts = options.amounts
    if amounts is None and measured.records is not None:
        amounts = amounts_behind(options.pipeline, [measured.records])
    return None if amounts is None else amounts[index]


def _is_endless(options: RunOptions, index: int) -> bool:
    return any(isinstance(stage, RepeatStage) and stage.count is None for stage in options.pipeline.stages[:index])
