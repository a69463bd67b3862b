"""What the loop and the calibration need of a training step, whatever it computes."""

from collections.abc import Mapping
from typing import Any, Protocol

Batch = Mapping[str, Any]
"""Tensors by name, as the pipeline yields them."""


class Trainer(Protocol):
    """One training step after the other."""

    def distribute(self, dataset: Any) -> Any:
        """Divide the pipeline's batches among the replicas."""

    def read_ids(self, batch: Batch) -> Any:
        """Return the ids of a batch's examples as an array, shape (batch,)."""

    def read_labels(self, batch: Batch) -> Any:
        """Return the labels of a batch's examples as an array of whole numbers, or None if they have none."""

    def step(self, batch: Batch) -> Any:
        """Train on a batch; the result may still be on its way on a GPU."""

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

    def read_ids(self, batch: Batch) -> Any:
        return batch["id"].numpy().reshape(-1)

    def read_labels(self, batch: Batch) -> Any:
        return None if "label" not in batch else batch["label"].numpy().reshape(-1)

    def weights(self) -> list[Any]:
        return []

    def save_state(self) -> Any:
        return [variable.numpy() for variable in self.weights()]

    def restore_state(self, state: Any) -> None:
        for variable, value in zip(self.weights(), state, strict=True):
            variable.assign(value)
