"""The steps as the job itself timed them: every step of a run, profiled or not."""

from dataclasses import dataclass

import pyarrow as pa

JOB_STEP_TABLE = pa.schema(
    [
        ("step", pa.int64()),
        ("warmup", pa.bool_()),
        ("start_ns", pa.int64()),  # on the diagnosis' axis
        ("wait_ns", pa.int64()),
        ("compute_ns", pa.int64()),
        ("step_ns", pa.int64()),  # to the start of the next step, so that Python between steps counts
        ("loss", pa.float64()),
        ("accuracy", pa.float64()),
        ("profiled", pa.bool_()),
    ]
)
"""One row per step."""


@dataclass(frozen=True, eq=False)
class JobSteps:
    """What the probe noted on every step; warm-up steps are in the table but in no number.

    Attributes:
        table: One row per step, :data:`JOB_STEP_TABLE`.
        count: Steps after the warm-up.
        median_ns, p95_ns, total_ns: Of the step time.
        wait_total_ns: Sum of waits.
        examples_per_second: Over the measured steps.
    """

    table: pa.Table
    count: int
    median_ns: float
    p95_ns: float
    total_ns: int
    wait_total_ns: int
    examples_per_second: float
