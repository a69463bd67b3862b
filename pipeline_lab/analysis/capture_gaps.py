"""The time between two profile windows, when nothing was recorded: told apart from idle time, of which it is none."""

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.gap_tables import GAP_TABLE
from pipeline_lab.analysis.intervals import IntArray


def find_capture_gaps(gaps: pa.Table, *others: pa.Table) -> pa.Table:
    """Find the time between the windows of each device of each host; busy intervals and stretches are the others."""
    hosts, devices, key, start, end = _windows(gaps, *others)
    after = np.flatnonzero((key[1:] == key[:-1]) & (start[1:] > end[:-1]))
    duration = start[after + 1] - end[after]
    zeros = {f"{cause.value}_ns": 0 for cause in GapCause}
    return tables.build(
        GAP_TABLE,
        len(after),
        host=[hosts[row] for row in after],
        device=[devices[row] for row in after],
        window=None,
        start_ns=end[after],
        duration_ns=duration,
        cause=GapCause.CAPTURE_GAP.value,
        host_operation=None,
        **{**zeros, f"{GapCause.CAPTURE_GAP.value}_ns": duration},
    )


def _windows(gaps: pa.Table, *others: pa.Table) -> tuple[list[str], list[str], IntArray, IntArray, IntArray]:
    """Return host, device, number of the device, start and end of every window, by device and start.

    The rows of all tables fill a window, so that its edges are theirs.
    """
    every = (gaps, *others)
    host, device = ([one for table in every for one in table.column(name).to_pylist()] for name in ("host", "device"))
    names = list(dict.fromkeys(zip(host, device, strict=True)))
    number = {name: index for index, name in enumerate(names)}
    key = np.fromiter((number[name] for name in zip(host, device, strict=True)), np.int64, len(host))
    window, starts = (np.concatenate([tables.ints(table, name) for table in every]) for name in ("window", "start_ns"))
    gap_ends = starts[: gaps.num_rows] + tables.ints(gaps, "duration_ns")
    ends = np.concatenate((gap_ends, *[tables.ints(table, "end_ns") for table in others]))
    order = np.lexsort((starts, window, key))
    key, window, starts, ends = key[order], window[order], starts[order], ends[order]
    first = np.flatnonzero(np.diff(key, prepend=-1) | np.diff(window, prepend=-1))
    end = np.maximum.reduceat(ends, first) if len(first) else ends
    by_time = np.lexsort((starts[first], key[first]))
    first, end = first[by_time], end[by_time]
    found = [names[index] for index in key[first]]
    return [name[0] for name in found], [name[1] for name in found], key[first], starts[first], end
