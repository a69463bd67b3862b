"""The timeline of busy and idle: one row per device and window, gaps coloured by their cause.

Every row starts at its window's start, so that the long stretches between windows, where the profiler was off, take
no room; each row says when its window began.
"""

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.idle_gaps import IdleGaps
from pipeline_lab.analysis.steps import Steps
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.places import event_place, stretch_place
from pipeline_lab.figures.segments import CLASSES, SHORT_GAPS, Segments, row_segments, timeline_rows
from pipeline_lab.figures.theme import THEMES, Mode, add_note, colour, new_figure
from pipeline_lab.units import NS_PER_MS, format_duration

MAX_ROWS = 12
MAX_SEGMENTS = 1800
MAX_STEP_MARKS = 400

_NAMES = {
    "busy": "busy",
    SHORT_GAPS: "work and short gaps",
    **{cause.value: cause.label for cause in GapCause},
}


def device_timeline(gaps: IdleGaps, steps: Steps | Unavailable, mode: Mode = "light") -> go.Figure:
    """Draw when the device worked and when it idled, each gap in the colour of its cause."""
    rows = timeline_rows(gaps)
    shown = _spread(rows, MAX_ROWS)
    figure = new_figure(
        "When the device worked and when it waited",
        mode,
        "Time since the start of the window (ms)",
        "",
        height=230 + 46 * max(2, len(shown)),
    )
    figure.update_layout(barmode="overlay", bargap=0.25)
    figure.update_yaxes(autorange="reversed", showgrid=False, type="category")
    segments = [row_segments(gaps, row, MAX_SEGMENTS // len(shown)) for row in shown]
    labels = _labels(segments)
    for number, name in enumerate(CLASSES):
        _add_class(figure, segments, labels, number, name, mode)
    if not isinstance(steps, Unavailable):
        _add_step_marks(figure, steps.table, segments, labels, mode)
    _add_notes(figure, gaps, len(rows), segments)
    return figure


def _add_class(
    figure: go.Figure, segments: list[Segments], labels: list[str], number: int, name: str, mode: Mode
) -> None:
    base: list[float] = []
    length: list[float] = []
    row: list[str] = []
    text: list[str] = []
    places: list[str] = []
    for one, label in zip(segments, labels, strict=True):
        mine = one.kind == number
        base.extend((one.start_ns[mine] - one.start_ns[0]) / NS_PER_MS)
        length.extend((one.end_ns[mine] - one.start_ns[mine]) / NS_PER_MS)
        row.extend([label] * int(mine.sum()))
        text.extend(f"<br>{operation}" if operation else "" for operation in one.operation[mine])
        places.extend(_places(one, mine))
    if not base:
        return
    figure.add_bar(
        base=base,
        x=length,
        y=row,
        orientation="h",
        name=_NAMES[name],
        customdata=text,
        ids=places,
        marker={"color": colour(name, mode), "line": {"width": 0}},
        hovertemplate=f"{_NAMES[name]}: %{{x:.3g}} ms from %{{base:.4g}} ms%{{customdata}}<extra></extra>",
    )


def _places(segments: Segments, mine: NDArray[np.bool_]) -> list[str]:
    """Return where the segments lie in the timeline: a gap as one event, what was joined as a stretch of time."""
    starts, ends = segments.start_ns[mine].tolist(), segments.end_ns[mine].tolist()
    is_joined = segments.resolution_ns is not None
    return [
        stretch_place(start, end) if is_joined or CLASSES[kind] in ("busy", SHORT_GAPS) else event_place("gap", start)
        for start, end, kind in zip(starts, ends, segments.kind[mine], strict=True)
    ]


def _add_step_marks(
    figure: go.Figure, table: pa.Table, segments: list[Segments], labels: list[str], mode: Mode
) -> None:
    x: list[float] = []
    y: list[str] = []
    step: list[int] = []
    for one, label in zip(segments, labels, strict=True):
        mine = pc.and_(pc.equal(table.column("window"), one.window), pc.equal(table.column("host"), one.host))
        found = table.filter(mine)
        x.extend((found.column("end_ns").to_numpy() - one.start_ns[0]) / NS_PER_MS)
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


def _add_notes(figure: go.Figure, gaps: IdleGaps, rows: int, segments: list[Segments]) -> None:
    if gaps.device == "host compute":
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
        labels.append(f"{one.device} {label}" if several else label)
    return _distinct(labels, segments)


def _distinct(labels: list[str], segments: list[Segments]) -> list[str]:
    if len(set(labels)) == len(labels):
        return labels
    return [f"{one.host} {label}" for one, label in zip(segments, labels, strict=True)]


def _spread(rows: list[tuple[str, str, int]], cap: int) -> list[tuple[str, str, int]]:
    if len(rows) <= cap:
        return rows
    return [rows[index] for index in np.linspace(0, len(rows) - 1, cap).round().astype(int)]
