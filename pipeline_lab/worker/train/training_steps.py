"""What a training step is, and how a loop calls it. Imports no TensorFlow."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pipeline_lab.worker.note.event_log import Clock

Batch = Mapping[str, Any]
"""Tensors by name, as the pipeline yields them."""


class Trainer(Protocol):
    """One training step after the other.

    ``step`` and ``evaluate`` may be called from Python or be traced into a larger graph, such as a loop; both return
    two numbers (tensors), in a place that :meth:`read` knows. Where a step computes outputs, those of the examples come
    third, from the forward pass that trains: shape (batch,) or (batch, classes), in parts like the entries of the batch.
    """

    def distribute(self, dataset: Any) -> Any:
        """Divide the pipeline's batches among the replicas."""

    def parts(self, value: Any) -> Sequence[Any]:
        """Return one entry of a batch as the replicas hold it, one part each."""

    def step(self, batch: Batch) -> Any:
        """Train on a batch; the result may still be on its way on a GPU."""

    def evaluate(self, batch: Batch) -> Any:
        """Return what a step would, and leave the model as it is."""

    def read(self, result: Any) -> tuple[float, float]:
        """Wait for a step's result and return its loss and accuracy; NaN where the workload has none."""

    def weights(self) -> list[Any]:
        """Return the variables that training changes."""

    def save_state(self) -> Any:
        """Copy everything that training changes."""

    def restore_state(self, state: Any) -> None:
        """Undo all training since that copy was made."""


class OneDeviceTrainer:
    """What steps on a single device share: they take batches as they come, and their state is their weights."""

    def distribute(self, dataset: Any) -> Any:
        return dataset

    def parts(self, value: Any) -> Sequence[Any]:
        return (value,)

    def weights(self) -> list[Any]:
        return []

    def save_state(self) -> Any:
        return [variable.numpy() for variable in self.weights()]

    def restore_state(self, state: Any) -> None:
        for variable, value in zip(self.weights(), state, strict=True):
            variable.assign(value)


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


class StepCalls(Protocol):
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
