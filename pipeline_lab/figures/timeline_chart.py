"""The timeline of busy and idle: one row per device and window, gaps colored by their cause, intervals joined to few segments.

Every row starts at its window's start, so that the long stretches between windows, where the profiler was off, take
no room; each row says when its window began.
"""

from typing import Any

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.activity import HOST_COMPUTE
from pipeline_lab.analysis.causes import GapCause, Work
from pipeline_lab.analysis.idle.idle_gaps import IdleGaps
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.aggregate import IntArray
from pipeline_lab.figures.marks import event_place, stretch_place
from pipeline_lab.figures.theme import THEMES, Mode, add_note, color, new_figure, row_height, say
from pipeline_lab.units import duration_unit, format_count, format_duration, format_percent

KINDS: tuple[Work | GapCause, ...] = (Work.BUSY, *GapCause, Work.SHORT_GAPS)
"""What a segment can be; a segment's ``kind`` is an index into this."""


@dataclass(frozen=True, eq=False)
class Segments:
    """One row of the timeline: consecutive segments that do not overlap.

    Attributes:
        host, device, window: Which device in which window.
        start_ns, end_ns: On the diagnosis' axis, shape (n,).
        kind: Index into :data:`KINDS`, shape (n,).
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
    index = {name.value: number for number, name in enumerate(KINDS)}
    causes = [index[cause] for cause in idle.column("cause").to_pylist()]
    kind = np.repeat([0, index[Work.SHORT_GAPS]], [busy.num_rows, mixed.num_rows])
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
    """Give each bin to the class that covers most of it, and join equal neighbors; bins without any are left out."""
    cover = np.stack([_covered(start[kind == one], end[kind == one], edges) for one in range(len(KINDS))])
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


MAX_ROWS = 12
ROW_HEIGHT = 46
MAX_SEGMENTS = 1800
MAX_STEP_MARKS = 400


def device_timeline(gaps: IdleGaps, steps: Steps | Unavailable, mode: Mode = "light") -> go.Figure:
    """Draw when the device worked and when it idled, each gap in the color of its cause."""
    rows = timeline_rows(gaps)
    shown = _spread(rows, MAX_ROWS)
    segments = [row_segments(gaps, row, MAX_SEGMENTS // len(shown)) for row in shown]
    labels = _labels(segments)
    unit = duration_unit(max((one.end_ns[-1] - one.start_ns[0] for one in segments), default=0))
    figure = new_figure(
        "When the device worked and when it waited",
        mode,
        f"Time since the start of the window ({unit[1]})",
        "",
        height=230 + row_height(labels, ROW_HEIGHT) * max(2, len(shown)),
    )
    figure.update_layout(barmode="overlay", bargap=0.25)
    figure.update_yaxes(autorange="reversed", showgrid=False, type="category", automargin=True)
    for number, kind in enumerate(KINDS):
        _add_class(figure, segments, labels, number, kind, unit, mode)
    if not isinstance(steps, Unavailable):
        _add_step_marks(figure, steps.table, segments, labels, unit[0], mode)
    say(figure, _caption(gaps))
    _add_notes(figure, gaps, len(rows), segments)
    return figure


def _add_class(
    figure: go.Figure,
    segments: list[Segments],
    labels: list[str],
    number: int,
    kind: Work | GapCause,
    unit: tuple[int, str],
    mode: Mode,
) -> None:
    base: list[float] = []
    length: list[float] = []
    row: list[str] = []
    text: list[str] = []
    places: list[str] = []
    for one, label in zip(segments, labels, strict=True):
        mine = one.kind == number
        base.extend((one.start_ns[mine] - one.start_ns[0]) / unit[0])
        length.extend((one.end_ns[mine] - one.start_ns[mine]) / unit[0])
        row.extend([label] * int(mine.sum()))
        lengths_ns, starts_ns = one.end_ns[mine] - one.start_ns[mine], one.start_ns[mine] - one.start_ns[0]
        text.extend(
            f"{format_duration(took)} from {format_duration(begins)}{f'<br>{operation}' if operation else ''}"
            for took, begins, operation in zip(lengths_ns, starts_ns, one.operation[mine], strict=True)
        )
        places.extend(_places(one, mine))
    if not base:
        return
    figure.add_bar(
        base=base,
        x=length,
        y=row,
        orientation="h",
        name=kind.label,
        customdata=text,
        ids=places,
        marker={"color": color(kind.value, mode), "line": {"width": 0}},
        hovertemplate=f"{kind.label}: %{{customdata}}<extra></extra>",
    )


def _places(segments: Segments, mine: NDArray[np.bool_]) -> list[str]:
    """Return where the segments lie in the timeline: a gap as one event, what was joined as a stretch of time."""
    starts, ends = segments.start_ns[mine].tolist(), segments.end_ns[mine].tolist()
    is_joined = segments.resolution_ns is not None
    return [
        stretch_place(start, end) if is_joined or isinstance(KINDS[kind], Work) else event_place("gap", start)
        for start, end, kind in zip(starts, ends, segments.kind[mine], strict=True)
    ]


def _add_step_marks(
    figure: go.Figure, table: pa.Table, segments: list[Segments], labels: list[str], unit_ns: int, mode: Mode
) -> None:
    x: list[float] = []
    y: list[str] = []
    step: list[int] = []
    for one, label in zip(segments, labels, strict=True):
        mine = pc.and_(pc.equal(table.column("window"), one.window), pc.equal(table.column("host"), one.host))
        found = table.filter(mine)
        x.extend((found.column("end_ns").to_numpy() - one.start_ns[0]) / unit_ns)
        y.extend([label] * found.num_rows)
        step.extend(found.column("step").to_pylist())
    if not x or len(x) > MAX_STEP_MARKS:
        return
    figure.add_scatter(
        x=x,
        y=y,
        mode="markers",
        name="end of a step",
        customdata=step,
        marker={"symbol": "line-ns", "size": 22, "line": {"width": 1.5, "color": THEMES[mode].ink}},
        hovertemplate="end of step %{customdata}<extra></extra>",
    )


def _caption(gaps: IdleGaps) -> str:
    """Say how much of the recorded time the device worked, and what most of the rest is."""
    idle = {cause: time_ns for cause, time_ns in gaps.idle_by_cause_ns.items() if time_ns > 0}
    busy_percent = 100 * (1 - sum(idle.values()) / gaps.window_ns) if gaps.window_ns else 0.0
    works = f"The device works during {format_percent(busy_percent)} of the recorded time"
    return f"{works}; most of the rest is {max(idle, key=idle.__getitem__).label}." if idle else f"{works}."


def _add_notes(figure: go.Figure, gaps: IdleGaps, rows: int, segments: list[Segments]) -> None:
    if gaps.device == HOST_COMPUTE:
        add_note(figure, "No device in the trace: host compute stands for it.")
    if rows > len(segments):
        add_note(figure, f"{len(segments)} of {rows} rows, spread over the run.")
    coarse = max((one.resolution_ns for one in segments if one.resolution_ns), default=None)
    if coarse is not None:
        add_note(figure, f"Each {format_duration(coarse)} shows what filled most of it.")
    if gaps.unrecorded_ns:
        add_note(figure, f"Left out: {format_duration(gaps.unrecorded_ns)} between windows, when the profiler was off.")


def _labels(segments: list[Segments]) -> list[str]:
    several = len({(one.host, one.device) for one in segments}) > 1
    first_ns = min((int(one.start_ns[0]) for one in segments), default=0)
    labels = []
    for one in segments:
        label = f"window {one.window + 1}"
        if one.start_ns[0] > first_ns:
            label += f"<br>+{format_duration(int(one.start_ns[0]) - first_ns)}"
        labels.append(f"{one.device}<br>{label}" if several else label)
    return _distinct(labels, segments)


def _distinct(labels: list[str], segments: list[Segments]) -> list[str]:
    if len(set(labels)) == len(labels):
        return labels
    return [f"{one.host}<br>{label}" for one, label in zip(segments, labels, strict=True)]


def _spread(rows: list[tuple[str, str, int]], cap: int) -> list[tuple[str, str, int]]:
    if len(rows) <= cap:
        return rows
    return [rows[index] for index in np.linspace(0, len(rows) - 1, cap).round().astype(int)]
