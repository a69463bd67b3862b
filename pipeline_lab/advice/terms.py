"""What a step may take as long as: the things that happen side by side, each with its time."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline_lab.advice.running import TUNED_PREFETCH, is_prefetch_added
from pipeline_lab.advice.stage_times import StageTime
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.workloads.generator import GeneratorWorkload

STEP, TURNS, POOL, PROCESSOR = "training step", "training step and input in turns", "thread pool", "processor"
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
        ms: How long a step would take if this alone counted.
    """

    name: str
    ms: float


def find_terms(times: Sequence[StageTime], options: RunOptions, *, ceiling_ms: float, threads: int) -> list[Term]:
    """Lay a pipeline out on its threads.

    A stage with threads of its own works while the one behind it does something else; the serial stages below it, down to
    the next such stage, take turns on one thread. What stands behind the last of them runs on the thread that trains.

    Args:
        times: Each stage, the reader first.
        options: What they were made from.
        ceiling_ms: The step if its input were free.
        threads: Q, of the pool.
    """
    terms, serial = _side_by_side(times, options)
    pooled_ms = sum(time.work_ms for time in times if time.running.uses_pool)
    if pooled_ms:
        terms.append(Term(POOL, pooled_ms / threads))
    held = held_batches(times, options)
    if is_prefetch_added(options, times[-1].running):
        terms += _thread(serial)
        serial = []
    serial_ms = sum(time.work_ms for time in serial)
    pipeline_ms = max((term.ms for term in terms), default=0.0)
    waited_ms = serial_ms
    if held < 1.0:  # while the step trains, no more is made than the buffers hold
        waited_ms = max(serial_ms, pipeline_ms - min(ceiling_ms, held * pipeline_ms))
    name = TURNS if waited_ms > TURNS_SHARE * ceiling_ms else STEP
    return [*terms, Term(name, ceiling_ms + waited_ms)]


def _side_by_side(times: Sequence[StageTime], options: RunOptions) -> tuple[list[Term], list[StageTime]]:
    """Return a term for each thread and each parallel stage, and the serial stages that are left behind them."""
    terms: list[Term] = []
    serial: list[StageTime] = []
    for time in times:
        if time.running.is_skipped:
            continue
        if not time.running.works_ahead:
            serial.append(time)
            continue
        terms += _thread(serial)
        fetched_ms = sum(each.work_ms for each in serial)
        serial = []
        if time.running.stage.stage == "read" and isinstance(options.workload, GeneratorWorkload):
            terms.append(Term(PYTHON, time.work_ms))
        elif time.work_ms:
            held_ms = (time.work_ms + fetched_ms) / time.running.slots
            terms.append(Term(time.running.stage.stage, max(time.work_ms / time.running.calls, held_ms)))
    return terms, serial


def _thread(serial: Sequence[StageTime]) -> list[Term]:
    """Return the term of a thread that runs serial stages; only those that matter name it."""
    total_ms = sum(time.work_ms for time in serial)
    named = [time.running.stage.stage for time in serial if time.work_ms >= NAMED_SHARE * total_ms]
    return [Term(" + ".join(dict.fromkeys(named)), total_ms)] if total_ms else []


def held_batches(times: Sequence[StageTime], options: RunOptions) -> float:
    """Return the batches that the last of some stages with threads of its own can make ahead; a prefetch may be added."""
    if is_prefetch_added(options, times[-1].running):
        return float(TUNED_PREFETCH)
    ahead = [time.running for time in times if time.running.works_ahead and not time.running.is_skipped]
    return ahead[-1].held_examples / options.pipeline.batch_size if ahead else 0.0
