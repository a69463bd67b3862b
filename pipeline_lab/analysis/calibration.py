"""The step alone and the pipeline alone, beside the step as it ran: how much there is to gain."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Calibration:
    """What the worker timed before the steps.

    Attributes:
        device_only_ns: G, one step on a held batch.
        pipeline_only_ns: D, one batch from the pipeline alone; None if it could not be timed.
        step_ns: P, the median step as it ran, unprofiled.
    """

    device_only_ns: float
    pipeline_only_ns: float | None
    step_ns: float

    @property
    def utilisation_percent(self) -> float:
        """G / P: how much of the step the device would need if its input were free."""
        return min(100.0, 100.0 * self.device_only_ns / self.step_ns)
