"""How a loop takes its training steps: one call from Python for each, or one call for several in a graph."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pipeline_lab.worker.clock import Clock
from pipeline_lab.worker.trainer import Batch, Trainer


@dataclass(frozen=True)
class TakenStep:
    """A training step that was taken; times in ns since the epoch.

    Attributes:
        start_ns: It asked for its batch.
        arrived_ns: The batch was there.
        ended_ns: Its result was there; None while it is still on its way.
        result: What :meth:`Trainer.read` turns into loss and accuracy.
        batch: The batch, or as much of it as is recorded.
    """

    start_ns: int
    arrived_ns: int
    ended_ns: int | None
    result: Any
    batch: Batch

    @property
    def wait_ns(self) -> int:
        return self.arrived_ns - self.start_ns


class Steps(Protocol):
    """Takes training steps."""

    @property
    def per_call(self) -> int:
        """Steps of one call at most."""

    def take(self, batches: Iterator[Any], most: int) -> Sequence[TakenStep]:
        """Take so many steps in one call; fewer where the data ends."""

    def repeat(self, batch: Batch, times: int) -> Any:
        """Train on one batch so many times, the way that a call does, and return the last result."""


class PythonSteps:
    """Python asks for a batch, then calls the step on it."""

    per_call = 1

    def __init__(self, trainer: Trainer, clock: Clock) -> None:
        self._trainer, self._clock = trainer, clock

    def take(self, batches: Iterator[Any], most: int) -> Sequence[TakenStep]:
        del most
        start_ns = self._clock.now_ns()
        batch = next(batches, None)
        arrived_ns = self._clock.now_ns()
        if batch is None:
            return ()
        return (TakenStep(start_ns, arrived_ns, None, self._trainer.step(batch), batch),)

    def repeat(self, batch: Batch, times: int) -> Any:
        result = None
        for _ in range(times):
            result = self._trainer.step(batch)
        return result
