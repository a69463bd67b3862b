"""What the loops and the calibration need of a training step, whatever it computes."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

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
