"""The tables of idle gaps: the gaps, what the host did in them, the work between them, and stretches of short ones."""

import pyarrow as pa

from pipeline_lab.analysis.causes import GapCause

GAP_TABLE = pa.schema(
    [
        ("host", pa.string()),
        ("device", pa.string()),
        ("window", pa.int32()),  # null for a capture gap
        ("start_ns", pa.int64()),
        ("duration_ns", pa.int64()),
        ("cause", pa.string()),  # a GapCause value: the one with the largest part, the earlier one if two are equal
        ("host_operation", pa.string()),  # the host operation that fills most of the gap, or null
        *[(f"{cause.value}_ns", pa.int64()) for cause in GapCause],  # how the gap divides; they add up to duration_ns
    ]
)
"""One row per maximal interval without device work."""

OPERATION_TABLE = pa.schema(
    [
        ("host", pa.string()),
        ("device", pa.string()),
        ("window", pa.int32()),
        ("start_ns", pa.int64()),  # of the gap
        ("rank", pa.int32()),  # 1 for the operation that fills most of the gap
        ("operation", pa.string()),  # type of the op, or name of the event
        ("time_ns", pa.int64()),  # how much of the gap it fills
    ]
)
"""One row per gap and host operation inside it."""

BUSY_TABLE = pa.schema(
    [
        ("host", pa.string()),
        ("device", pa.string()),
        ("window", pa.int32()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
    ]
)
"""One row per maximal interval of device work; adjacent events are joined."""

MIXED_TABLE = pa.schema([*BUSY_TABLE, ("gaps", pa.int64()), ("idle_ns", pa.int64())])
"""One row per stretch of short gaps and the work between them: how many gaps, and how much of the stretch they are."""
