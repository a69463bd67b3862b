"""Turn busy intervals and gaps of one device in one window into few coloured segments."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.idle_gaps import IdleGaps
from pipeline_lab.figures.aggregate import IntArray
from pipeline_lab.units import format_count, format_percent

SHORT_GAPS = "short_gaps"
CLASSES: tuple[str, ...] = ("busy", *(cause.value for cause in GapCause), SHORT_GAPS)
"""What a segment can be; a segment's ``kind`` is an index into this."""


@dataclass(frozen=True, eq=False)
class Segments:
    """One row of the timeline: consecutive segments that do not overlap.

    Attributes:
        host, device, window: Which device in which window.
        start_ns, end_ns: On the diagnosis' axis, shape (n,).
        kind: Index into :data:`CLASSES`, shape (n,).
        operation: What else is known of each segment or an empty text, shape (n,): the host operation of a gap, how many
            short gaps a stretch holds; all empty when joined.
        resolution_ns: Width of the bins whose dominant class is shown, or None if every interval is drawn.
    """

    host: str
    device: str
    window: int
    start_ns: IntArray
    end_ns: IntArray
    kind: IntArray
    operation: NDArray[np.object_]
    resolution_ns: float | None


def timeline_rows(gaps: IdleGaps) -> list[tuple[str, str, int]]:
    """Return every (host, device, window) that has busy time or gaps, windows in order of time."""
    keys: dict[tuple[str, str, int], int] = {}
    for table in (gaps.busy, gaps.gaps, gaps.mixed):
        inside = table.filter(pc.is_valid(table.column("window")))
        found = inside.group_by(["host", "device", "window"]).aggregate([("start_ns", "min")])
        for row in found.to_pylist():
            key = (row["host"], row["device"], row["window"])
            keys[key] = min(keys.get(key, row["start_ns_min"]), row["start_ns_min"])
    return sorted(keys, key=lambda key: (keys[key], key))


def row_segments(gaps: IdleGaps, row: tuple[str, str, int], cap: int) -> Segments:
    """Return one row's segments; more than ``cap`` are joined by what fills most of each bin."""
    busy, idle, mixed = (_of_row(table, row) for table in (gaps.busy, gaps.gaps, gaps.mixed))
    start = np.concatenate([_ints(table, "start_ns") for table in (busy, idle, mixed)])
    gap_end = _ints(idle, "start_ns") + _ints(idle, "duration_ns")
    end = np.concatenate([_ints(busy, "end_ns"), gap_end, _ints(mixed, "end_ns")])
    index = {name: number for number, name in enumerate(CLASSES)}
    causes = [index[cause] for cause in idle.column("cause").to_pylist()]
    kind = np.repeat([0, index[SHORT_GAPS]], [busy.num_rows, mixed.num_rows])
    kind = np.concatenate([kind[: busy.num_rows], np.array(causes, np.int64), kind[busy.num_rows :]])
    operations = [name or "" for name in idle.column("host_operation").to_pylist()]
    names = [""] * busy.num_rows + operations + [_count(stretch) for stretch in mixed.to_pylist()]
    order = np.argsort(start, kind="stable")
    start, end, kind = start[order], end[order], kind[order]
    if len(start) <= cap:
        return Segments(*row, start, end, kind, np.array(names, np.object_)[order], None)
    edges = np.linspace(start[0], end.max(), cap + 1)
    start, end, kind = _dominant(start, end, kind, edges)
    return Segments(*row, start, end, kind, np.full(len(start), "", np.object_), float(edges[1] - edges[0]))


def _count(stretch: dict[str, Any]) -> str:
    """Say how many gaps a stretch holds, and how much of it they are."""
    share = 100 * stretch["idle_ns"] / (stretch["end_ns"] - stretch["start_ns"])
    return f"{format_count(stretch['gaps'])} gaps, {format_percent(share)} of it idle"


def _dominant(
    start: IntArray, end: IntArray, kind: IntArray, edges: NDArray[np.float64]
) -> tuple[IntArray, IntArray, IntArray]:
    """Give each bin to the class that covers most of it, and join equal neighbours; bins without any are left out."""
    cover = np.stack([_covered(start[kind == one], end[kind == one], edges) for one in range(len(CLASSES))])
    best = np.where(cover.max(axis=0) > 0, cover.argmax(axis=0), -1)
    first = np.flatnonzero(np.diff(best, prepend=-2))
    last = np.append(first[1:], len(best))
    keep = best[first] >= 0
    joined_start, joined_end = edges[first[keep]], edges[last[keep]]
    return joined_start.astype(np.int64), joined_end.astype(np.int64), best[first[keep]].astype(np.int64)


def _covered(start: IntArray, end: IntArray, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how much of each bin the intervals cover; sorted, without overlap. Shape (bins,), ns."""
    if not len(start):
        return np.zeros(len(edges) - 1)
    total = np.concatenate([[0], np.cumsum(end - start)]).astype(np.float64)
    index = np.searchsorted(start, edges, "right")
    until = total[index]
    inside = index > 0
    until[inside] -= np.maximum(0, end[index[inside] - 1] - edges[inside])
    return np.diff(until)


def _of_row(table: pa.Table, row: tuple[str, str, int]) -> pa.Table:
    host, device, window = row
    chosen = pc.and_(pc.equal(table.column("host"), host), pc.equal(table.column("device"), device))
    return table.filter(pc.and_(chosen, pc.equal(table.column("window"), window)))


def _ints(table: pa.Table, name: str) -> IntArray:
    return np.asarray(table.column(name).to_numpy(), np.int64)
