"""What a shuffle that stands before a repeat costs: each epoch begins with an empty buffer and ends without reading."""

import math
from collections.abc import Sequence
from dataclasses import replace

from pipeline_lab.advice.measured import Measured
from pipeline_lab.advice.stage_times import StageTime
from pipeline_lab.advice.terms import Term, find_terms, held_batches
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.stages import RepeatStage, ShuffleStage

REFILL = "shuffle, filled again each epoch"
LEAST_SHARE = 0.01
"""Part of the step that refilling has to add before it is worth a term."""


def refill_terms(
    times: Sequence[StageTime],
    options: RunOptions,
    measured: Measured,
    step_ms: float,
    *,
    ceiling_ms: float,
    threads: int,
) -> list[Term]:
    """Return the step where a buffer is refilled in every epoch, if one is and it costs anything.

    A run that refills one itself has it in its step already, and in the waits that were put on its pipeline.

    While a buffer fills, what stands behind it has nothing to do but what it holds ready; while it empties at the end of
    the epoch, what stands before it has nothing to do. For that share of the epoch the two take turns.

    Args:
        times: Each stage, the reader first.
        options: What they were made from.
        measured: The run that tells how many records an epoch has, where the options do not.
        step_ms: The step if the buffer were always full.
        ceiling_ms: The step if its input were free.
        threads: Q, of the pool.
    """
    place = _refilled(options)
    epoch = None if place is None else _examples(options, place, measured.records)
    is_new = _refilled(measured.options) is None
    if not is_new or place is None or epoch is None or times[place].running.is_skipped:
        return []
    share = min(1.0, _buffered(options, place) / epoch)
    before = [_idle(time) if index > place else time for index, time in enumerate(times)]
    behind = [_idle(time) if index <= place else time for index, time in enumerate(times)]
    fill_ms = max(term.ms for term in find_terms(before, options, ceiling_ms=0.0, threads=threads))
    rest_ms = max(term.ms for term in find_terms(behind, options, ceiling_ms=ceiling_ms, threads=threads))
    batches = epoch / options.pipeline.batch_size
    held_ms = held_batches(times[place + 1 :], options) * rest_ms / batches
    added_ms = share * (fill_ms + rest_ms - step_ms) - min(share * fill_ms, held_ms)
    return [Term(REFILL, step_ms + added_ms)] if added_ms > LEAST_SHARE * step_ms else []


def _refilled(options: RunOptions) -> int | None:
    """Return the place of the last shuffle of examples that a repeat comes after."""
    stages, sizes = options.pipeline.stages, options.pipeline.batch_sizes
    repeats = [index for index, stage in enumerate(stages) if isinstance(stage, RepeatStage)]
    found = [
        index
        for index, stage in enumerate(stages)
        if isinstance(stage, ShuffleStage) and sizes[index] is None and repeats and index < repeats[0]
    ]
    return found[-1] if found else None


def _examples(options: RunOptions, place: int, records: int | None) -> float | None:
    """Return the examples that come to the shuffle in one epoch; None where that is not known."""
    amounts = options.amounts
    examples = float(records or 0) if amounts is None else float(amounts[place].elements)
    return examples if examples > 0 and math.isfinite(examples) else None


def _buffered(options: RunOptions, place: int) -> float:
    stage = options.pipeline.stages[place]
    assert isinstance(stage, ShuffleStage)
    return float(stage.buffer_size)


def _idle(time: StageTime) -> StageTime:
    return replace(time, work_ms=0.0, cpu_ms=0.0)
