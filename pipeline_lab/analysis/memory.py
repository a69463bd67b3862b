"""The job's memory over time, with the profile windows and their flushes."""

from dataclasses import dataclass

import pyarrow as pa

MEMORY_TABLE = pa.schema([("time_ns", pa.int64()), ("rss_bytes", pa.int64()), ("flushing", pa.bool_())])
"""Process memory over time, on the diagnosis' axis."""


@dataclass(frozen=True, eq=False)
class Memory:
    """Process memory.

    Attributes:
        process_peak_bytes: Largest resident size seen.
        process_start_bytes: Resident size at the first sample.
        table: Over time, :data:`MEMORY_TABLE`.
    """

    process_peak_bytes: int
    process_start_bytes: int
    table: pa.Table
