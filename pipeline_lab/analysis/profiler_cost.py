"""What the profiler itself cost the job: windows, capture gaps, flushes, slower steps."""

from dataclasses import dataclass

import pyarrow as pa

WINDOW_TABLE = pa.schema(
    [
        ("window", pa.int32()),
        ("name", pa.string()),
        ("first_step", pa.int64()),
        ("last_step", pa.int64()),
        ("start_ns", pa.int64()),  # on the diagnosis' axis
        ("stop_ns", pa.int64()),
        ("flushed_ns", pa.int64()),
        ("start_cost_ns", pa.int64()),  # training thread held to open the window
        ("stop_cost_ns", pa.int64()),
        ("size_bytes", pa.int64()),
        ("rss_growth_bytes", pa.int64()),
        ("shortened", pa.bool_()),
    ]
)
"""One row per window."""


@dataclass(frozen=True, eq=False)
class ProfilerCost:
    """The profiler's price.

    Attributes:
        windows: One row per window, :data:`WINDOW_TABLE`.
        profiled_steps: Steps inside windows.
        profiled_step_ns, plain_step_ns, flushing_step_ns: Median step inside windows, outside, and during a flush;
            None where there were too few.
    """

    windows: pa.Table
    profiled_steps: int
    profiled_step_ns: float | None
    plain_step_ns: float | None
    flushing_step_ns: float | None
