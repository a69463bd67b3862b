"""Which file each example came from, beside what an even sample would be."""

from dataclasses import dataclass

import pyarrow as pa

FILE_TABLE = pa.schema(
    [
        ("file", pa.string()),
        ("records", pa.int64()),  # in the file, null if not counted
        ("reads", pa.int64()),  # records its reader produced inside the windows, null if the trace does not say
        ("samples", pa.int64()),  # examples that reached the model, null without the sample probe
        ("expected_share", pa.float64()),  # its records over all records, 0 to 1, null if not counted
        ("observed_share", pa.float64()),  # of the samples (of the reads if there are no samples), 0 to 1
    ]
)
"""One row per file; where the files are unknown, one row per reader index."""

TIMELINE_TABLE = pa.schema(
    [("file", pa.string()), ("bin", pa.int32()), ("step", pa.float64()), ("samples", pa.int64())]
)
"""Samples per file over the course of the run: at most 60 bins; ``step`` is the bin's middle."""


@dataclass(frozen=True, eq=False)
class FileSampling:
    """The per-file sampling distribution.

    Attributes:
        basis: ``samples`` when the probe counted examples, else ``reads``.
        table: One row per file, :data:`FILE_TABLE`.
        timeline: Samples per file over the steps, :data:`TIMELINE_TABLE`; no rows without the probe.
        total_variation: Half the sum of absolute differences of observed and expected shares, 0 to 1; None if the
            expected shares are unknown.
        total_variation_ideal: The mean of the same number for an even sample of the same size (simulated).
        unopened: Number of files that gave no example.
        coverage_percent: Distinct records used over all records, percent; None without the probe.
        duplicates: Examples that were used again within their epoch's worth of samples; None without the probe.
    """

    basis: str
    table: pa.Table
    timeline: pa.Table
    total_variation: float | None
    total_variation_ideal: float | None
    unopened: int
    coverage_percent: float | None
    duplicates: int | None
