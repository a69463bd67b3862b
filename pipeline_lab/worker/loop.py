"""The training loop: warm-up, then steps or seconds, every step timed and some of them profiled."""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.options.workload import SyntheticWorkload
from pipeline_lab.runs.events import NoteEvent, ProgressEvent
from pipeline_lab.units import NS_PER_S
from pipeline_lab.worker.job import Job
from pipeline_lab.worker.memory import ResidentMemory
from pipeline_lab.worker.recorder import StepRecorder, StepTimes
from pipeline_lab.worker.trainer import Trainer
from pipeline_lab.worker.windows import StepWindows

PROGRESS_PERIOD_NS = NS_PER_S // 2
PROGRESS_SHARE = 200
"""A long job reports less often: every two-hundredth of the time it has taken so far."""


class TrainingLoop:
    """Runs one job's steps; ``mark_step`` surrounds each with its marker in the trace, ``after_step`` follows it."""

    def __init__(
        self,
        job: Job,
        trainer: Trainer,
        windows: StepWindows,
        recorder: StepRecorder,
        mark_step: Callable[[int], AbstractContextManager[None]],
        after_step: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._job, self._trainer, self._windows, self._recorder = job, trainer, windows, recorder
        self._mark_step, self._after_step = mark_step, after_step
        self._progress = Progress(job)
        self._memory = ResidentMemory()
        workload = job.options.workload
        self._pause_s = workload.python_ms / 1e3 if isinstance(workload, SyntheticWorkload) else 0.0

    def run(self, batches: Iterator[Any]) -> None:
        """Train until the steps are done, the time is over, the data ends or the job is asked to stop.

        Args:
            batches: Iterator of the pipeline.
        """
        training = self._job.options.training
        self._job.enter("warmup")
        for step in itertools.count():
            is_warmup = step < training.warmup_steps
            if step == training.warmup_steps:
                self._job.enter("training")
                self._progress.start()
            if self._job.stop.is_set or (not is_warmup and self._progress.is_complete):
                break
            if not is_warmup:
                self._windows.before_step(step)
            if not self._train(step, is_warmup=is_warmup, batches=batches):
                self._job.log.write(NoteEvent(_early_end(step, training)))
                break
            self._after_step(step)
            self._windows.after_step(step)
            if not is_warmup:
                self._progress.count_step()
            if self._pause_s:
                time.sleep(self._pause_s)
        self._progress.report()

    def _train(self, step: int, *, is_warmup: bool, batches: Iterator[Any]) -> bool:
        """Take one step; False if the data has ended."""
        clock, window = self._job.clock, self._windows.number
        with self._mark_step(step):
            start_ns = clock.now_ns()
            batch = next(batches, None)
            arrived_ns = clock.now_ns()
            if batch is None:
                return False
            result = self._trainer.step(batch)
            rss_bytes = self._memory.read_bytes()
            times = StepTimes(step, is_warmup, start_ns, arrived_ns, window, rss_bytes)
            self._recorder.record(times, result)
        self._recorder.record_samples(step, batch)
        return True


class Progress:
    """How far the steps after the warm-up have come."""

    def __init__(self, job: Job) -> None:
        self._job, self._training = job, job.options.training
        self._steps = 0
        self._begun_ns: int | None = None
        self._reported_ns, self._reported_steps = 0, -1

    def start(self) -> None:
        self._begun_ns = self._job.clock.now_ns()
        self.report()

    @property
    def is_complete(self) -> bool:
        if self._training.steps is not None:
            return self._steps >= self._training.steps
        return self._elapsed_s >= (self._training.seconds or 0)

    def count_step(self) -> None:
        self._steps += 1
        now_ns = self._job.clock.now_ns()
        period_ns = max(PROGRESS_PERIOD_NS, (now_ns - (self._begun_ns or 0)) // PROGRESS_SHARE)
        if now_ns - self._reported_ns >= period_ns:
            self.report()

    def report(self) -> None:
        """Tell readers, if training has begun and they do not know yet."""
        if self._begun_ns is None or self._steps == self._reported_steps:
            return
        self._reported_ns, self._reported_steps = self._job.clock.now_ns(), self._steps
        training = self._training
        self._job.log.write(ProgressEvent(self._steps, training.steps, self._elapsed_s, training.seconds))

    @property
    def _elapsed_s(self) -> float:
        return (self._job.clock.now_ns() - (self._begun_ns or 0)) / NS_PER_S


def _early_end(step: int, training: TrainingOptions) -> str:
    wanted = f"{training.seconds:g} s" if training.steps is None else f"{training.warmup_steps + training.steps} steps"
    return (
        f"The data ended after {step} of {wanted}, warm-up included; add a repeat stage to go on with another epoch."
        if training.steps is not None
        else f"The data ended after {step} steps, before {wanted} were over; add a repeat stage to go on."
    )
