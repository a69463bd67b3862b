"""Before the steps: the pipeline alone (D) and the step alone on a held batch (G), each within a fifth of a second or so."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipeline_lab.errors import DataError
from pipeline_lab.runs.events import CalibrationEvent
from pipeline_lab.worker.steps import Steps
from pipeline_lab.worker.trainer import Batch, Trainer

BUDGET_NS = 200_000_000
PATIENCE_NS = 10_000_000_000
"""A pipeline whose first batch takes longer is not asked for a second one."""
END_S = 2.0
"""A pipeline that takes longer to end is left to itself."""
WARMUP_STEPS = 2
MIN_STEPS = 2


@dataclass(frozen=True)
class PipelineTime:
    """The pipeline drained with nothing else running.

    Attributes:
        batch: The last batch that came.
        first_batch_ns: From the start to the first batch: files opened, shuffle buffer filled.
        batch_ns: Mean time of the batches after it, None if there was none.
        batches: Batches after the first.
        batch_cpu_ns: Mean processor time of the process for each of them, None if there was none.
    """

    batch: Batch
    first_batch_ns: int
    batch_ns: float | None
    batches: int
    batch_cpu_ns: float | None


@dataclass(frozen=True)
class StepTime:
    """The step on one batch, over and over.

    Attributes:
        step_ns, step_cpu_ns: Mean time of a step, and mean processor time of the process.
        steps: How many were timed.
    """

    step_ns: float
    step_cpu_ns: float
    steps: int


def calibrate(
    trainer: Trainer, steps: Steps, make_dataset: Callable[[], Any], hold: Callable[[Batch], Batch]
) -> CalibrationEvent:
    """Time pipeline and step apart from each other; leaves the trainer as it was.

    Args:
        trainer: The step.
        steps: How it is called.
        make_dataset: Builds a pipeline of its own for this, so that the job's caches stay untouched.
        hold: Puts a batch into the device's memory.

    Raises:
        DataError: The pipeline yields no batch at all.
    """
    pipeline = time_pipeline(make_dataset())
    step = time_step(trainer, steps, hold(pipeline.batch))
    return CalibrationEvent(
        device_only_ns=step.step_ns,
        device_only_steps=step.steps,
        pipeline_only_ns=pipeline.batch_ns,
        pipeline_only_batches=pipeline.batches,
        first_batch_ns=float(pipeline.first_batch_ns),
        device_only_cpu_ns=step.step_cpu_ns,
        pipeline_only_cpu_ns=pipeline.batch_cpu_ns,
    )


def time_pipeline(dataset: Any) -> PipelineTime:
    """Drain a pipeline for a while, first batch apart.

    Its end is waited for, since until then its threads go on making elements, which would slow down what is timed next. Not
    for long, though, and then it is left to a thread: destroying an iterator waits for the autotuner's next round, which
    takes as long as the iterator has lived.

    Raises:
        DataError: It yields no batch at all.
    """
    begun_ns = time.perf_counter_ns()
    iterators = [iter(dataset)]
    batch = next(iterators[0], None)
    if batch is None:
        raise DataError(
            "The pipeline yields no batch: there are fewer examples than one batch holds, and drop_remainder is on; "
            "use a smaller batch or more data."
        )
    first_ns, first_cpu_ns = time.perf_counter_ns(), time.process_time_ns()
    now_ns, batches = first_ns, 0
    patience_ns = BUDGET_NS if first_ns - begun_ns < PATIENCE_NS else 0
    while now_ns - first_ns < patience_ns and (following := next(iterators[0], None)) is not None:
        batch, batches, now_ns = following, batches + 1, time.perf_counter_ns()
    cpu_ns = time.process_time_ns() - first_cpu_ns
    ending = threading.Thread(target=iterators.clear, name="iterator-end", daemon=True)
    ending.start()
    ending.join(END_S)
    first_batch_ns = first_ns - begun_ns
    if not batches:
        return PipelineTime(batch, first_batch_ns, None, 0, None)
    return PipelineTime(batch, first_batch_ns, (now_ns - first_ns) / batches, batches, cpu_ns / batches)


def time_step(trainer: Trainer, steps: Steps, batch: Batch) -> StepTime:
    """Time the step on one batch over and over; what it learns from that is undone."""
    state = trainer.save_state()
    for _ in range(WARMUP_STEPS):
        trainer.read(steps.repeat(batch, 1))
    together = _steps_together(trainer, steps, batch)
    begun_ns, begun_cpu_ns, timed = time.perf_counter_ns(), time.process_time_ns(), 0
    previous = steps.repeat(batch, together)
    while timed < MIN_STEPS or time.perf_counter_ns() - begun_ns < BUDGET_NS:
        current = steps.repeat(batch, together)
        trainer.read(previous)
        previous, timed = current, timed + together
    trainer.read(previous)
    elapsed_ns, cpu_ns = time.perf_counter_ns() - begun_ns, time.process_time_ns() - begun_cpu_ns
    trainer.restore_state(state)
    timed += together
    return StepTime(elapsed_ns / timed, cpu_ns / timed, timed)


def _steps_together(trainer: Trainer, steps: Steps, batch: Batch) -> int:
    """Return how many steps to take in one call: as many as in training, but no more than the budget has room for."""
    if steps.per_call == 1:
        return 1
    begun_ns = time.perf_counter_ns()
    trainer.read(steps.repeat(batch, 1))
    step_ns = max(1, time.perf_counter_ns() - begun_ns)
    return max(1, min(steps.per_call, BUDGET_NS // step_ns))
