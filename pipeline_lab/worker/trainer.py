"""What the loop and the calibration need of a training step, whatever it computes."""

from collections.abc import Mapping
from typing import Any, Protocol

Batch = Mapping[str, Any]
"""Tensors by name, as the pipeline yields them."""


class Trainer(Protocol):
    """One training step after the other."""

    def step(self, batch: Batch) -> Any:
        """Train on a batch; the result may still be on its way on a GPU."""

    def read(self, result: Any) -> tuple[float, float]:
        """Wait for a step's result and return its loss and accuracy; NaN where the workload has none."""

    def save_state(self) -> Any:
        """Copy everything that training changes."""

    def restore_state(self, state: Any) -> None:
        """Undo all training since that copy was made."""
