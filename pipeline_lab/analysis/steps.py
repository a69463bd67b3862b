"""Find the training steps of a trace, and say what marked them."""

from dataclasses import dataclass

import pyarrow as pa

STEP_TABLE = pa.schema(
    [
        ("host", pa.string()),
        ("window", pa.int32()),  # number of the window, in the order of time
        ("step", pa.int64()),  # step number where the marker carries one, else a running number
        ("start_ns", pa.int64()),  # on the diagnosis' axis; end of the previous marker or first host event of the step
        ("end_ns", pa.int64()),
        ("wait_ns", pa.int64()),  # union of input waits inside the step
        ("exposed_ns", pa.int64()),  # that union minus device busy time
        ("busy_ns", pa.int64()),  # device (or host compute) busy inside the step
    ]
)
"""One row per step."""


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of all windows.

    Attributes:
        marker: What marked them, in the field's words (``Trace 'train' (step_num)``, ``Keras train_function``, …).
        steps_per_marker: Training steps inside one marked interval; None if the trace does not say.
        table: One row per step, :data:`STEP_TABLE`, ordered by start.
        first_step_only: The capture holds one step and it is the job's first (tracing, compiling).
    """

    marker: str
    steps_per_marker: float | None
    table: pa.Table
    first_step_only: bool

    @property
    def count(self) -> int:
        return int(self.table.num_rows)
