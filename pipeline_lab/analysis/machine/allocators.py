"""Memory by allocator: what TensorFlow took from each while the profiler was on.

Every ``MemoryAllocation`` and ``MemoryDeallocation`` event tells what its allocator (``GPU_0_bfc``, ``cpu``, ``mklcpu``)
has handed out by then, and the most that it ever had.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Analysis, PerTrace
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from pipeline_lab.trace.schema import Line, Trace

ALLOCATOR_TABLE = pa.schema(
    [
        ("host", pa.string()),
        ("window", pa.int32()),
        ("start_ns", pa.int64()),
        ("allocator", pa.string()),
        ("used_bytes", pa.int64()),  # handed out after the event
    ]
)
"""One row per event, in order of time; evenly chosen ones of a thread with more than :data:`MAX_EVENTS`."""

NO_ALLOCATIONS = (
    "The trace holds no allocation events, so memory by allocator is unknown; record with TensorFlow's own profiler."
)
EVENTS = ("MemoryAllocation", "MemoryDeallocation")
MAX_EVENTS = 2_000


@dataclass(frozen=True)
class Allocator:
    """One allocator of one host.

    Attributes:
        peak_bytes: Most that it had handed out since the process began, as last told.
    """

    host: str
    name: str
    peak_bytes: int


@dataclass(frozen=True, eq=False)
class Allocators:
    """Every allocator that the traces tell of, the largest first, and its use over time: :data:`ALLOCATOR_TABLE`."""

    allocators: tuple[Allocator, ...]
    table: pa.Table


def read_allocators(trace: Trace) -> Allocators:
    """Read the allocation events of one trace.

    Raises:
        TraceIncompleteError: There are none.
    """
    host = trace.host_plane
    mask = None if host is None else host.name_mask(lambda name: name in EVENTS)
    if host is None or mask is None or not mask.any() or not host.lines:
        raise TraceIncompleteError(NO_ALLOCATIONS)
    parts = [_of_line(line, line.rows_named(mask)) for line in host.lines]
    names = [name for part in parts for name in part[0]]
    start_ns, used, peak = (np.concatenate([part[index] for part in parts]) for index in (1, 2, 3))
    order = np.argsort(start_ns, kind="stable")
    peaks: dict[str, int] = {}
    for name, most in zip(names, np.maximum(used, peak).tolist(), strict=True):
        peaks[name] = max(peaks.get(name, 0), most)
    if not peaks:
        raise TraceIncompleteError(NO_ALLOCATIONS)
    table = tables.build(
        ALLOCATOR_TABLE,
        len(order),
        host=trace.host,
        window=0,
        start_ns=start_ns[order],
        allocator=[names[row] for row in order],
        used_bytes=used[order],
    )
    return Allocators(_largest_first([Allocator(trace.host, name, most) for name, most in peaks.items()]), table)


def merge_allocators(parts: Sequence[Allocators]) -> Allocators:
    """Put the windows and hosts of one job together, in order of time."""
    peaks: dict[tuple[str, str], int] = {}
    for found in (allocator for part in parts for allocator in part.allocators):
        key = (found.host, found.name)
        peaks[key] = max(peaks.get(key, 0), found.peak_bytes)
    allocators = [Allocator(host, name, most) for (host, name), most in peaks.items()]
    return Allocators(_largest_first(allocators), pa.concat_tables([part.table for part in parts]))


def _of_line(line: Line, rows: IntArray) -> tuple[list[str], IntArray, IntArray, IntArray]:
    """Return allocator, start, used and peak bytes of a thread's events, those without a name left out."""
    if len(rows) > MAX_EVENTS:
        rows = rows[np.linspace(0, len(rows) - 1, MAX_EVENTS).astype(np.int64)]
    names = line.stats.texts(rows, "allocator_name")
    known = np.array([bool(name) for name in names], np.bool_)
    used, peak = (line.stats.ints(rows, stat)[0] for stat in ("bytes_allocated", "peak_bytes_in_use"))
    return [name for name in names if name], line.start_ns[rows][known], used[known], peak[known]


def _largest_first(found: list[Allocator]) -> tuple[Allocator, ...]:
    return tuple(sorted(found, key=lambda allocator: (-allocator.peak_bytes, allocator.host, allocator.name)))


ALLOCATORS = Analysis(
    Allocators,
    per_trace=PerTrace(
        lambda trace: read_allocators(trace.activity.trace), merge_allocators, Unavailable(NO_ALLOCATIONS)
    ),
    json_inside="memory",
)
