"""One arm of a race: a separate pipeline and model that run in blocks and rest in between, without profiling."""

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import DataError
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.machine.nvidia import Gpu
from pipeline_lab.units import NS_PER_S
from pipeline_lab.worker.job_context import Job
from pipeline_lab.worker.race.resting import LEAD_STEPS, AutotunerRest, ReadyBatches, Resting
from pipeline_lab.worker.record.own_process import ResidentMemory
from pipeline_lab.worker.record.resources import ProcessorLoad
from pipeline_lab.worker.record.step_recorder import StepPlace, StepRecorder
from pipeline_lab.worker.record.window_recorder import NO_WINDOW, WindowRecorder
from pipeline_lab.worker.train.training_steps import StepCalls, Trainer


@dataclass(frozen=True)
class BlockLoad:
    """Load of the machine during a block.

    Attributes:
        cpu_ns: CPU time of this process and its children.
        other_load_percent: Share of all cores that other programs used, 0 to 100, including time stolen by the host.
        throttled: The GPU had lowered its clocks at the end of the block, because of heat or missing power, not because of
            its own power limit.
    """

    cpu_ns: int
    other_load_percent: float
    throttled: bool


class LoadMeter:
    """Measures from one ``start`` to the next ``read``.

    Args:
        gpu: The one that the race uses.
    """

    def __init__(self, gpu: Gpu) -> None:
        self._cores = os.cpu_count() or 1
        self._gpu = gpu
        self._processor = ProcessorLoad()

    def start(self) -> None:
        self._processor.lap()

    def read(self) -> BlockLoad:
        """Return the load since the start."""
        use = self._processor.lap()
        percent = min(100.0, 100 * use.others_s / (use.elapsed_s * self._cores))
        return BlockLoad(round((use.own_s + use.children_s) * NS_PER_S), percent, self._gpu.is_unsteady())


NOT_SETTLED = "AUTOTUNE had not settled when the race began; raise warmup_seconds, or set fixed numbers."
FIRST_STEPS = 2
"""Steps that compile; the first batch also waits for a full shuffle buffer."""

MarkStep = Callable[[int], AbstractContextManager[None]]
"""Surrounds a step with its marker in the trace."""


@dataclass(frozen=True)
class Block:
    """A finished block; ``BLOCKS`` explains each number."""

    start_ns: int
    first_step: int
    steps: int
    wall_ns: int
    wait_ns: int | None
    drained_batches: int
    load: BlockLoad


class Arm:
    """Runs one option set in blocks."""

    def __init__(
        self,
        job: Job,
        trainer: Trainer,
        steps: StepCalls,
        recorder: StepRecorder,
        batches: Iterator[Any],
        buffers: ReadyBatches,
    ) -> None:
        self._job, self.trainer, self._recorder = job, trainer, recorder
        self._calls, self._batches, self._buffers = steps, batches, buffers
        self._resting = Resting(buffers, job.stop)
        self._memory = ResidentMemory()
        self._steps = self._batches_kept = 0

    def warm_up(self, epoch_batches: int, limit_s: float) -> str | None:
        """Compile, fill shuffle buffer and caches, let the autotuner settle; the training is undone.

        Args:
            epoch_batches: Batches until every cache is full, 0 without a cache.
            limit_s: Longest time, s.

        Returns:
            A sentence about what did not settle in time, or None.
        """
        begun_s = time.monotonic()
        state = self.trainer.save_state()
        self._train(FIRST_STEPS, is_measured=False, keep_samples=False)
        troubles = [self._fill_caches(epoch_batches, begun_s + limit_s), self._tune(begun_s + limit_s)]
        self._recorder.catch_up()
        self.trainer.restore_state(state)
        self.rest()
        return next(filter(None, troubles), None)

    def run_block(self, steps: int, meter: LoadMeter) -> Block:
        """Drain what was buffered during the pause, then time the steps; the arm needs a rest afterwards."""
        drained = self._drain()
        self._train(LEAD_STEPS, is_measured=False)
        self._recorder.catch_up()
        meter.start()  # takes about a ms
        first_step, start_ns, before_ns = self._steps, self._job.clock.now_ns(), self._recorder.exposed_wait_ns
        self._train(steps, is_measured=True)
        self._recorder.catch_up()
        wall_ns = self._job.clock.now_ns() - start_ns
        wait_ns = self._recorder.exposed_wait_ns - before_ns
        block = Block(start_ns, first_step, steps, wall_ns, wait_ns, drained, meter.read())
        self._resting.begin(wall_ns / steps / NS_PER_S)
        return block

    def run_window(self, recorder: WindowRecorder, mark_step: MarkStep) -> None:
        """Record a profile window of the arm, after the race: profiling would slow its blocks."""
        self._drain()
        self._train(LEAD_STEPS, is_measured=False)
        window = recorder.open(self._steps)
        end = self._steps + self._job.options.profiling.steps_per_window
        while self._steps < end:
            with mark_step(self._steps):
                self._train(self._calls.per_call, is_measured=False)
            window.last_step = self._steps - 1
        self._recorder.catch_up()
        recorder.close()
        recorder.finish()

    def rest(self) -> None:
        """Wait until the pipeline's threads are idle, to not slow the next arm; not after a stop request."""
        self._resting.rest()

    def _drain(self) -> int:
        return self._resting.drain(lambda: self._note_samples(self._next()))

    def _fill_caches(self, epoch_batches: int, deadline_s: float) -> str | None:
        for number in range(epoch_batches):
            if time.monotonic() > deadline_s:
                return (
                    f"The cache was not full when the race began ({number:,} of {epoch_batches:,} batches of the first "
                    "epoch); raise warmup_seconds to race with a full one."
                )
            self._job.stop.check()
            self._next()
        return None

    def _tune(self, deadline_s: float) -> str | None:
        """Train until the parameters have been stable for as long as they took to settle."""
        tuning = AutotunerRest(self._buffers)
        while not tuning.is_settled():
            if time.monotonic() > deadline_s:
                return NOT_SETTLED
            self._job.stop.check()
            self._train(1, is_measured=False, keep_samples=False)
        return None

    def _train(self, steps: int, *, is_measured: bool, keep_samples: bool = True) -> None:
        """Take steps."""
        while steps:
            most = min(steps, self._calls.per_call)
            taken = self._calls.take(self._batches, most)
            if len(taken) < most:
                raise self._ended()
            rss_bytes = self._memory.read_bytes()
            for one in taken:
                self._recorder.record(StepPlace(self._steps, not is_measured, NO_WINDOW, rss_bytes), one)
                self._steps += 1
            if keep_samples:
                for one in taken:
                    self._note_samples(one.batch)
            self._job.pause()
            steps -= len(taken)

    def _note_samples(self, batch: Any) -> None:
        """Record files and records of a batch, drained ones too, so that the stream has no gaps."""
        self._recorder.record_samples(self._batches_kept, batch)
        self._batches_kept += 1

    def _next(self) -> Any:
        batch = next(self._batches, None)
        if batch is None:
            raise self._ended()
        return batch

    def _ended(self) -> DataError:
        return DataError(f"The data of {self._job.options.label} ended during the race; repeat it without a count.")


def count_epoch_batches(options: RunOptions, records: int | None) -> int:
    """Return the batches until every cache is full: one epoch plus the contents of shuffle buffers.

    Args:
        options: The arm.
        records: Records in its files, None if unknown.
    """
    stages = options.pipeline.stages
    if records is None or not any(stage.fills for stage in stages):
        return 0
    size = options.pipeline.batch_size
    held_back = sum(
        min(records, stage.buffered * (batch or 1))
        for stage, batch in zip(stages, options.pipeline.batch_sizes, strict=True)
        if stage.buffered
    )
    return math.ceil((records + held_back) / size) + 1
