"""How a pipeline pauses between its blocks in a race without gaining or losing by it.

While other arms run, an arm's threads go on until its buffers are full. A race that ignored this would measure how fast
the arm empties them: a prefetch of 64 batches looked four to seven times faster than one of 2. So

- after a block, the arm waits until its buffers are full, which keeps its threads out of the next arm's block;
- before a block, it drops what was buffered meanwhile, down to what was left when it stopped;
- two uncounted steps then bring step and pipeline into their rhythm.

The arm thus continues with its buffers as full as if it had never paused.
"""

import math
import time
from collections.abc import Callable
from typing import Any, Protocol

from pipeline_lab.worker.job_context import StopRequest

LEAD_STEPS = 2
MIN_TUNING_S = 1.3
"""The autotuner runs after 10 ms, 20 ms and so on; its eighth run comes about now."""
FULL_AFTER_STEPS = 1.5
"""Buffers that have not grown for the time of this many steps are full, unless a prefetch is known to have room."""
MIN_PATIENCE_S, MAX_PATIENCE_S = 0.02, 1.0
MAX_FILLING_S = 30.0
MOST_DRAINED = 4
"""Most batches to drain, as a multiple of the surplus, since a fast pipeline refills while it is drained."""
STUCK_AFTER_STEPS = 20
"""A prefetch that has had room for the time of this many steps has read its input to the end of an epoch."""
MIN_STUCK_S, UNKNOWN_STUCK_S = 0.1, 2.0
"""The least of that time, and that time while nobody knows how long a step takes."""
POLL_S = 0.002


class ReadyBatches(Protocol):
    """What an iterator has buffered; see :class:`pipeline_lab.worker.race.buffers.Buffers`."""

    def batches(self) -> float: ...

    def elements(self) -> int: ...

    def has_room(self) -> bool: ...

    def tuned(self) -> tuple[tuple[Any, ...], ...]:
        """Return what the autotuner may change, each with the number of its node first."""


class Resting:
    """One arm's pauses."""

    def __init__(self, buffers: ReadyBatches, stop: StopRequest) -> None:
        self._buffers, self._stop = buffers, stop
        self._left_batches = self._step_s = 0.0

    def begin(self, step_s: float) -> None:
        """Note what is left after a block, whose steps took so long."""
        self._left_batches, self._step_s = self._buffers.batches(), step_s

    def rest(self) -> None:
        """Wait until the pipeline's threads are idle, to not slow the next arm; not after a stop request."""
        patience_s = min(max(FULL_AFTER_STEPS * self._step_s, MIN_PATIENCE_S), MAX_PATIENCE_S)
        stuck_s = max(STUCK_AFTER_STEPS * self._step_s, MIN_STUCK_S) if self._step_s else UNKNOWN_STUCK_S
        begun_s = grown_s = time.monotonic()
        elements = self._buffers.elements()
        while not self._stop.is_set and (now_s := time.monotonic()) - begun_s < MAX_FILLING_S:
            still_s = now_s - grown_s
            if still_s >= patience_s and (still_s >= stuck_s or not self._buffers.has_room()):
                return
            time.sleep(POLL_S)
            if (found := self._buffers.elements()) != elements:
                elements, grown_s = found, time.monotonic()

    def drain(self, drop: Callable[[], object]) -> int:
        """Drop what was buffered during the pause, and during the draining; return how many batches that was.

        Args:
            drop: Takes one batch.
        """
        most = MOST_DRAINED * math.ceil(self._buffers.batches() - self._left_batches)
        drained = 0
        while drained < most and self._buffers.batches() > self._left_batches:
            drop()
            drained += 1
        return drained


class AutotunerRest:
    """Whether the autotuner has settled: its parameters have been stable for as long as they took to.

    Where an epoch ends before that, the pipeline is made again, and tuned from the start, with each epoch: that is its steady
    state.
    """

    def __init__(self, buffers: ReadyBatches) -> None:
        self._buffers, self._tuned = buffers, buffers.tuned()
        self._begun_s = self._changed_s = time.monotonic()
        self._began_again = False

    def is_settled(self) -> bool:
        """Look again, after a step."""
        if not self._tuned:
            return True
        if (found := self._buffers.tuned()) != self._tuned:
            self._began_again |= {each[0] for each in found} != {each[0] for each in self._tuned}
            self._tuned, self._changed_s = found, time.monotonic()
        took_s = 0.0 if self._began_again else 2 * (self._changed_s - self._begun_s)
        return time.monotonic() - self._begun_s >= max(MIN_TUNING_S, took_s)
