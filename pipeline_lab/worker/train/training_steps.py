"""The interface of a training step, and of how a loop calls it. Imports no TensorFlow."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from pipeline_lab.data_classes import dataclass
from pipeline_lab.worker.note.event_log import Clock

Batch = Mapping[str, Any]
"""Tensors by name, as the pipeline yields them."""


class Trainer(Protocol):
    """The training step of a workload.

    ``step`` and ``evaluate`` may be called from Python or traced into a larger graph, such as a loop. Both return loss and
    accuracy as tensors, which :meth:`read` waits for. The outputs of the forward pass may come third, shape (batch,) or
    (batch, classes), in parts like the entries of the batch.
    """

    def distribute(self, dataset: Any) -> Any:
        """Divide the pipeline's batches among the replicas."""

    def parts(self, value: Any) -> Sequence[Any]:
        """Return one entry of a batch, in one part per replica."""

    def step(self, batch: Batch) -> Any:
        """Train on a batch; the result may still be on its way on a GPU."""

    def evaluate(self, batch: Batch) -> Any:
        """Return the results of a step without changing the model."""

    def read(self, result: Any) -> tuple[float, float]:
        """Wait for a step's result and return its loss and accuracy; NaN where the workload has none."""

    def ended_ns(self, result: Any) -> int | None:
        """Return when the device ended a step whose result was read, ns since the epoch; None where it does not say."""

    def weights(self) -> list[Any]:
        """Return the variables that training changes."""

    def save_state(self) -> Any:
        """Copy everything that training changes."""

    def restore_state(self, state: Any) -> None:
        """Undo all training since that copy was made."""


class OneDeviceTrainer:
    """Base of trainers on a single device, whose state is their weights."""

    def distribute(self, dataset: Any) -> Any:
        return dataset

    def parts(self, value: Any) -> Sequence[Any]:
        return (value,)

    def ended_ns(self, result: Any) -> int | None:
        del result
        return None

    def weights(self) -> list[Any]:
        return []

    def save_state(self) -> Any:
        return [variable.numpy() for variable in self.weights()]

    def restore_state(self, state: Any) -> None:
        for variable, value in zip(self.weights(), state, strict=True):
            variable.assign(value)


@dataclass(frozen=True)
class TakenStep:
    """A training step that was launched; times in ns since the epoch.

    Attributes:
        start_ns: It requested its batch.
        arrived_ns: The batch arrived.
        returned_ns: The host's call of it returned.
        ready_ns: Its result arrived; None while it is pending.
        result: For :meth:`Trainer.read`.
        batch: The batch, or its recorded entries.
    """

    start_ns: int
    arrived_ns: int
    returned_ns: int
    ready_ns: int | None
    result: Any
    batch: Batch

    @property
    def wait_ns(self) -> int:
        return self.arrived_ns - self.start_ns


class StepCalls(Protocol):
    """Takes training steps."""

    @property
    def per_call(self) -> int:
        """Most steps of one call."""

    def take(self, batches: Iterator[Any], most: int) -> Sequence[TakenStep]:
        """Take ``most`` steps in one call; fewer where the data ends."""

    def repeat(self, batch: Batch, times: int) -> Any:
        """Train on one batch several times, as a call does, and return the last result."""


class PythonSteps:
    """Python requests a batch, then calls the step on it.

    Args:
        trainer: The step.
        clock: The job's.
        reads: Wait for each step's result before the next batch is requested, as a loop does that prints its loss. What the
            job notes of a step is written meanwhile.
    """

    per_call = 1

    def __init__(self, trainer: Trainer, clock: Clock, *, reads: bool = False) -> None:
        self._trainer, self._clock, self._reads = trainer, clock, reads
        self._unread: Any = None

    def take(self, batches: Iterator[Any], most: int) -> Sequence[TakenStep]:
        del most
        if self._unread is not None:
            self._trainer.read(self._unread)
        start_ns = self._clock.now_ns()
        batch = next(batches, None)
        arrived_ns = self._clock.now_ns()
        if batch is None:
            return ()
        result = self._trainer.step(batch)
        self._unread = result if self._reads else None
        return (TakenStep(start_ns, arrived_ns, self._clock.now_ns(), None, result, batch),)

    def repeat(self, batch: Batch, times: int) -> Any:
        result = None
        for _ in range(times):
            result = self._trainer.step(batch)
        return result
