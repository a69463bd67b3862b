"""What bounds the time of a step: what each stage takes, and everything that runs side by side with it.

Each stage has a thread time and holds memory (caches, shuffle buffers, prefetched elements). The step takes as long as the
longest of its terms.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from pipeline_lab.advice.measured_run import Measured, idle_ns
from pipeline_lab.advice.stage_costs import RunningStage, StageCost, is_prefetch_added, running_stages
from pipeline_lab.advice.workload_changes import changed_ns
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.delivery import TUNED_PREFETCH
from pipeline_lab.stages.stage import Stage
from pipeline_lab.stages.stage_values import Amount


@dataclass(frozen=True)
class StageTime:
    """One stage for one batch.

    Attributes:
        running: How it runs.
        work_ns: w, thread time.
        cpu_ns: Of it, processor time.
        assumed_ns: What was assumed for an example, because the run did not measure the stage; None where it did.
    """

    running: RunningStage
    work_ns: float
    cpu_ns: float
    assumed_ns: float | None = None


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
        each_ns = _assumed_ns(stage, measured)
        return StageTime(stage, examples * each_ns, examples * each_ns, each_ns)
    size = options.pipeline.batch_sizes[stage.index] or 1
    each_ns = changed_ns(cost, measured.options, options, examples_per_call=size)
    busy_ns = cost.ns_per_example - idle_ns(cost, measured.options)
    share = cost.cpu_ns_per_example / busy_ns if busy_ns > 0 else 1.0
    cpu_ns = share * (each_ns - idle_ns(StageCost(cost.stage, each_ns, each_ns), options))
    return StageTime(stage, examples * each_ns * measured.pipeline_factor, examples * cpu_ns)


def _assumed_ns(stage: RunningStage, measured: Measured) -> float:
    sizes = [cost.bytes_per_example for cost in measured.stages if cost.bytes_per_example is not None]
    return stage.stage.assumed_ns(max(sizes, default=0.0))


NO_SIZE = "The size of an example at {stage} is not known; record a run to measure it."
NO_RECORDS = "The records of an epoch were not counted, so the size of the cache is not known; record a run that counts its samples."
ENDLESS = "The cache comes after an endless repeat: it never fills and grows until memory runs out."


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
    """Return the size of one example after each stage, as measured if the run had that stage."""
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
    """Return what comes out of a stage in one pass over the data, None if the records were not counted."""
    amounts = options.amounts
    if amounts is None and measured.records is not None:
        amounts = options.pipeline.amounts([measured.records])
    return None if amounts is None else amounts[index]


STEP, TURNS, POOL, PROCESSOR = "training step", "compute and input, not overlapped", "thread pool", "processor"
ORDER = "order of "
"""Comes before the name of the stage whose order it is."""
PYTHON = "Python, one thread at a time"

TURNS_SHARE = 0.05
"""Part of the step beyond which its serial input is worth naming."""
NAMED_SHARE = 0.1
"""Part of a thread's work that makes a stage give it its name."""


@dataclass(frozen=True)
class Term:
    """One of the things that a step may take as long as.

    Attributes:
        name: For people.
        time_ns: How long a step would take if this alone counted.
    """

    name: str
    time_ns: float


def find_terms(times: Sequence[StageTime], options: RunOptions, *, ceiling_ns: float, threads: int) -> list[Term]:
    """Lay a pipeline out on its threads.

    A stage with threads of its own works while the next one does something else; the serial stages before it, down to
    the next such stage, share one thread. Stages after the last of them run on the training thread.

    Args:
        times: Each stage, the reader first.
        options: What they were made from.
        ceiling_ns: The step if its input were free.
        threads: Q, of the pool.
    """
    terms, serial = _side_by_side(times, options)
    pooled_ns = sum(time.work_ns for time in times if time.running.uses_pool)
    if pooled_ns:
        terms.append(Term(POOL, pooled_ns / threads))
    held = held_batches(times, options)
    if is_prefetch_added(options, times[-1].running):
        terms += _thread(serial)
        serial = []
    if options.training.overlaps_host:
        return [*terms, *_thread(serial), Term(STEP, ceiling_ns)]
    serial_ns = sum(time.work_ns for time in serial)
    pipeline_ns = max((term.time_ns for term in terms), default=0.0)
    waited_ns = serial_ns
    if held < 1.0:  # while the step trains, no more is made than the buffers hold
        waited_ns = max(serial_ns, pipeline_ns - min(ceiling_ns, held * pipeline_ns))
    name = TURNS if waited_ns > TURNS_SHARE * ceiling_ns else STEP
    return [*terms, Term(name, ceiling_ns + waited_ns)]


def _side_by_side(times: Sequence[StageTime], options: RunOptions) -> tuple[list[Term], list[StageTime]]:
    """Return a term for each thread and each parallel stage, and the remaining serial stages after them."""
    terms: list[Term] = []
    serial: list[StageTime] = []
    for time in times:
        if time.running.is_skipped:
            continue
        if not time.running.works_ahead:
            serial.append(time)
            continue
        terms += _thread(serial)
        fetched_ns = sum(each.work_ns for each in serial)
        serial = []
        if time.running.stage.stage == "read" and options.workload.made_by_python:
            terms.append(Term(PYTHON, time.work_ns))
        elif time.work_ns:
            held_ns = (time.work_ns + fetched_ns) / time.running.slots
            terms.append(Term(time.running.stage.stage, max(time.work_ns / time.running.calls, held_ns)))
    return terms, serial


def _thread(serial: Sequence[StageTime]) -> list[Term]:
    """Return the term of a thread that runs serial stages; only those that matter name it."""
    total_ns = sum(time.work_ns for time in serial)
    named = [time.running.stage.stage for time in serial if time.work_ns >= NAMED_SHARE * total_ns]
    return [Term(" + ".join(dict.fromkeys(named)), total_ns)] if total_ns else []


def held_batches(times: Sequence[StageTime], options: RunOptions) -> float:
    """Return the batches that the last of some stages with threads of its own can make ahead; a prefetch may be added."""
    if is_prefetch_added(options, times[-1].running):
        return float(TUNED_PREFETCH)
    ahead = [time.running for time in times if time.running.works_ahead and not time.running.is_skipped]
    return ahead[-1].held_examples / options.pipeline.batch_size if ahead else 0.0


REFILL = "shuffle buffer, refilled each epoch"
LEAST_SHARE = 0.01
"""Part of the step that refilling has to add before it is worth a term."""


def refill_terms(
    times: Sequence[StageTime],
    options: RunOptions,
    measured: Measured,
    step_ns: float,
    *,
    ceiling_ns: float,
    threads: int,
) -> list[Term]:
    """Return the step where a buffer is refilled in every epoch, if one is and it costs anything.

    A run that refills one itself has it in its step already, and in the waits that were put on its pipeline.

    While a buffer fills, stages after it have only what it holds ready; while it empties at the end of
    the epoch, stages before it are idle. For that share of the epoch the two do not overlap.

    Args:
        times: Each stage, the reader first.
        options: What they were made from.
        measured: The run that tells how many records an epoch has, where the options do not.
        step_ns: The step if the buffer were always full.
        ceiling_ns: The step if its input were free.
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
    fill_ns = max(term.time_ns for term in find_terms(before, options, ceiling_ns=0.0, threads=threads))
    rest_ns = max(term.time_ns for term in find_terms(behind, options, ceiling_ns=ceiling_ns, threads=threads))
    batches = epoch / options.pipeline.batch_size
    held_ns = held_batches(times[place + 1 :], options) * rest_ns / batches
    added_ns = share * (fill_ns + rest_ns - step_ns) - min(share * fill_ns, held_ns)
    return [Term(REFILL, step_ns + added_ns)] if added_ns > LEAST_SHARE * step_ns else []


def _refilled(options: RunOptions) -> int | None:
    """Return the place of the last shuffle of examples that a repeat comes after."""
    stages, sizes = options.pipeline.stages, options.pipeline.batch_sizes
    repeats = [index for index, stage in enumerate(stages) if stage.repeats]
    found = [
        index
        for index, stage in enumerate(stages)
        if stage.buffered and sizes[index] is None and repeats and index < repeats[0]
    ]
    return found[-1] if found else None


def _examples(options: RunOptions, place: int, records: int | None) -> float | None:
    """Return the examples that come to the shuffle in one epoch; None where that is not known."""
    amounts = options.amounts
    examples = float(records or 0) if amounts is None else float(amounts[place].elements)
    return examples if examples > 0 and math.isfinite(examples) else None


def _buffered(options: RunOptions, place: int) -> float:
    return float(options.pipeline.stages[place].buffered or 0)


def _idle(time: StageTime) -> StageTime:
    return replace(time, work_ns=0.0, cpu_ns=0.0)
