"""One arm of a race: a separate pipeline and model that run in blocks and rest in between, without profiling.

While other arms run, an arm's threads go on until its buffers are full. A race that ignored this would measure how fast
the arm empties them: a prefetch of 64 batches looked four to seven times faster than one of 2. So

- after a block, the arm waits until its buffers are full, which keeps its threads out of the next arm's block;
- before a block, it drops what was buffered meanwhile, down to what was left when it stopped;
- two uncounted steps then bring step and pipeline into their rhythm.

The arm thus continues with its buffers as full as if it had never paused.
"""

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from pipeline_lab.errors import DataError
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.nvidia import Gpu
from pipeline_lab.units import NS_PER_S
from pipeline_lab.worker.job_context import Job
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


FIRST_STEPS = 2
"""Steps that compile; the first batch also waits for a full shuffle buffer."""
LEAD_STEPS = 2
MIN_TUNING_S = 1.3
"""The autotuner runs after 10 ms, 20 ms and so on; its eighth run comes about now."""
FULL_AFTER_STEPS = 1.5
"""Buffers that have not grown for the time of this many steps are full, unless a prefetch is known to have room."""
MIN_PATIENCE_S, MAX_PATIENCE_S = 0.02, 1.0
MAX_FILLING_S = 30.0
MOST_DRAINED = 4
"""Most batches to drain, as a multiple of the surplus, since a fast pipeline refills while it is drained."""
POLL_S = 0.002

MarkStep = Callable[[int], AbstractContextManager[None]]
"""Surrounds a step with its marker in the trace."""


class ReadyBatches(Protocol):
    """What an iterator has buffered; see :class:`pipeline_lab.worker.race.race_session.Buffers`."""

    def batches(self) -> float: ...

    def elements(self) -> int: ...

    def has_room(self) -> bool: ...

    def tuned(self) -> tuple[Any, ...]: ...


@dataclass(frozen=True)
class Block:
    """A finished block; ``BLOCKS`` explains each number."""

    start_ns: int
    first_step: int
    steps: int
    wall_ns: int
    wait_ns: int
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
        self._memory = ResidentMemory()
        self._steps = self._batches_kept = 0
        self._left_batches = self._step_s = 0.0

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
        self._left_batches = self._buffers.batches()
        self._step_s = wall_ns / steps / NS_PER_S
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
        patience_s = min(max(FULL_AFTER_STEPS * self._step_s, MIN_PATIENCE_S), MAX_PATIENCE_S)
        begun_s = grown_s = time.monotonic()
        elements = self._buffers.elements()
        while not self._job.stop.is_set and (now_s := time.monotonic()) - begun_s < MAX_FILLING_S:
            if now_s - grown_s >= patience_s and not self._buffers.has_room():
                return
            time.sleep(POLL_S)
            if (found := self._buffers.elements()) != elements:
                elements, grown_s = found, time.monotonic()

    def _drain(self) -> int:
        """Drop what was buffered during the pause, and during the draining."""
        most = MOST_DRAINED * math.ceil(self._buffers.batches() - self._left_batches)
        drained = 0
        while drained < most and self._buffers.batches() > self._left_batches:
            self._note_samples(self._next())
            drained += 1
        return drained

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
        begun_s = changed_s = time.monotonic()
        tuned = self._buffers.tuned()
        while tuned and (now_s := time.monotonic()) - begun_s < max(MIN_TUNING_S, 2 * (changed_s - begun_s)):
            if now_s > deadline_s:
                return "AUTOTUNE had not settled when the race began; raise warmup_seconds, or set fixed numbers."
            self._job.stop.check()
            self._train(1, is_measured=False, keep_samples=False)
            if (found := self._buffers.tuned()) != tuned:
                tuned, changed_s = found, time.monotonic()
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
