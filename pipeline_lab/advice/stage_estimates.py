"""What each stage of a pipeline will take: thread time, and memory for caches, shuffle buffers and prefetched elements."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline_lab.advice.measured_run import Measured, idle_ms
from pipeline_lab.advice.running_stages import RunningStage, running_stages
from pipeline_lab.advice.stage_costs import StageCost
from pipeline_lab.advice.workload_changes import changed_ms
from pipeline_lab.errors import Unavailable
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.stage import Amount, Stage


@dataclass(frozen=True)
class StageTime:
    """One stage for one batch.

    Attributes:
        running: How it runs.
        work_ms: w, thread time.
        cpu_ms: Of it, processor time.
    """

    running: RunningStage
    work_ms: float
    cpu_ms: float


def stage_times(running: Sequence[RunningStage], measured: Measured, options: RunOptions) -> tuple[StageTime, ...]:
    """Work out what each stage will take.

    Args:
        running: The stages of the changed options.
        measured: A run.
        options: The changed options.
    """
    costs = {cost.stage: cost for cost in reversed(measured.stages)}
    behind = options.pipeline.examples_for_batch(options.amounts)
    return tuple(
        StageTime(stage, 0.0, 0.0)
        if stage.is_skipped
        else _time(stage, costs.get(_known_as(stage.stage, measured)), behind[stage.index], measured, options)
        for stage in running
    )


def _known_as(stage: Stage, measured: Measured) -> str:
    """Return the stage's name, or none where the run's stage of that name was of another kind."""
    known = measured.options.pipeline.find(stage.stage)
    return stage.stage if known is None or stage.costs_like(known) else ""


def _time(
    stage: RunningStage, cost: StageCost | None, examples: float, measured: Measured, options: RunOptions
) -> StageTime:
    if cost is None:
        ms = examples * _assumed_ms(stage, measured)
        return StageTime(stage, ms, ms)
    size = options.pipeline.batch_sizes[stage.index] or 1
    ms = changed_ms(cost, measured.options, options, examples_per_call=size)
    busy_ms = cost.ms_per_example - idle_ms(cost, measured.options)
    share = cost.cpu_ms_per_example / busy_ms if busy_ms > 0 else 1.0
    cpu_ms = share * (ms - idle_ms(StageCost(cost.stage, ms, ms), options))
    return StageTime(stage, examples * ms * measured.pipeline_factor, examples * cpu_ms)


def _assumed_ms(stage: RunningStage, measured: Measured) -> float:
    sizes = [cost.bytes_per_example for cost in measured.stages if cost.bytes_per_example is not None]
    return stage.stage.assumed_ms(max(sizes, default=0.0))


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
        if stage.stage.buffered is not None:
            held = stage.stage.buffered * (options.pipeline.batch_sizes[stage.index] or 1)
            held = min(held, measured.records or held)
        elif stage.stage.keeps == "memory":
            if any(before.is_endless for before in options.pipeline.stages[: stage.index]):
                return Unavailable(ENDLESS)
            amount = amount_behind(options, measured, stage.index)
            if amount is None:
                return Unavailable(NO_RECORDS)
            held = amount.examples
        if stage.is_skipped and stage.stage.keeps is None:
            continue
        size = sizes[stage.index]
        if held and size is None:
            return Unavailable(NO_SIZE.format(stage=stage.stage.stage))
        total += held * (size or 0.0)
    return math.ceil(total)


def example_bytes(options: RunOptions, measured: Measured) -> tuple[float | None, ...]:
    """Return the size of one example behind each stage, as it was measured where the run had that stage."""
    seen = {cost.stage: cost.bytes_per_example for cost in measured.stages}
    sizes: list[float | None] = []
    for index, (stage, element) in enumerate(zip(options.pipeline.stages, options.elements, strict=True)):
        if not index or stage.is_function:
            known = seen.get(stage.stage)
            sizes.append(float(element.example_bytes) if known is None and element.example_bytes else known)
        else:
            sizes.append(sizes[-1])
    return tuple(sizes)


def amount_behind(options: RunOptions, measured: Measured, index: int) -> Amount | None:
    """Return what comes out of a stage in one pass over the data, None if nobody counted the records."""
    amounts = options.amounts
    if amounts is None and measured.records is not None:
        amounts = options.pipeline.amounts([measured.records])
    return None if amounts is None else amounts[index]
