"""The work that each stage of changed options will have for one batch."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline_lab.advice.measured import Measured, idle_ms
from pipeline_lab.advice.running import RunningStage
from pipeline_lab.advice.stage_costs import StageCost
from pipeline_lab.advice.visits import examples_behind
from pipeline_lab.advice.workloads import changed_ms
from pipeline_lab.options.pipeline import Stage
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.stages import CacheStage

TAKEN_MS = 0.001
"""Time of a stage that does next to nothing with an example and was not measured: repeat, shuffle, a cache in memory."""
FROM_DISK_MS = 0.02
"""Time to read an example of a few kB back from a cache on disk (2.5 GHz core, page cache warm)."""
COPIED_BYTES_PER_MS = 2e6
"""Bytes of a larger one that are read back in a millisecond."""


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
    behind = examples_behind(options)
    return tuple(
        StageTime(stage, 0.0, 0.0)
        if stage.is_skipped
        else _time(stage, costs.get(_known_as(stage.stage, measured)), behind[stage.index], measured, options)
        for stage in running
    )


def _known_as(stage: Stage, measured: Measured) -> str:
    """Return the stage's name, or none where the run's stage of that name was of another kind."""
    if isinstance(stage, CacheStage):
        known = measured.options.pipeline.find("cache")
        return "cache" if isinstance(known, CacheStage) and known.where == stage.where else ""
    return stage.stage


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
    if not isinstance(stage.stage, CacheStage) or stage.stage.where == "memory":
        return TAKEN_MS
    sizes = [cost.bytes_per_example for cost in measured.stages if cost.bytes_per_example is not None]
    return FROM_DISK_MS + max(sizes, default=0.0) / COPIED_BYTES_PER_MS
