"""How long each step waited for its next input element, and how much of that left the device idle."""

from dataclasses import dataclass

import pyarrow as pa

WAIT_TABLE = pa.schema(
    [
        ("host", pa.string()),
        ("window", pa.int32()),
        ("step", pa.int64()),  # null for a wait outside every step
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("exposed_ns", pa.int64()),
    ]
)
"""One row per wait: the union of overlapping wait events on one host."""


@dataclass(frozen=True, eq=False)
class InputStalls:
    """Waits for input, clipped to the steps.

    Attributes:
        wait_ns: Union of waits clipped to the steps, summed over steps.
        exposed_ns: That union minus device busy time.
        step_ns: Length of all steps.
        events: Number of wait events.
        event_sum_ns: Plain sum of the wait events' durations (what naive tools show).
        event_names: The events that were counted as waits.
        table: One row per wait, :data:`WAIT_TABLE`.
    """

    wait_ns: int
    exposed_ns: int
    step_ns: int
    events: int
    event_sum_ns: int
    event_names: tuple[str, ...]
    table: pa.Table

    @property
    def wait_percent(self) -> float:
        return 100.0 * self.wait_ns / self.step_ns if self.step_ns else 0.0

    @property
    def exposed_percent(self) -> float:
        return 100.0 * self.exposed_ns / self.step_ns if self.step_ns else 0.0
