"""What the steps consist of: of all recorded steps together, and of each in the order of time."""

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa

from pipeline_lab.analysis.causes import StepPart
from pipeline_lab.analysis.outlier_steps import OutlierSteps
from pipeline_lab.analysis.step_breakdown import StepBreakdown
from pipeline_lab.analysis.step_findings import PART_NAMES
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.aggregate import FloatArray, IntArray, column, group_mean, group_size, group_starts
from pipeline_lab.figures.places import event_places
from pipeline_lab.figures.theme import THEMES, Mode, add_note, colour, new_figure
from pipeline_lab.units import NS_PER_MS

MAX_BARS = 180
MAX_MARKS = 100


def step_parts_over_time(
    breakdown: StepBreakdown, outliers: OutlierSteps | Unavailable, mode: Mode = "light"
) -> go.Figure:
    """Draw each recorded step as a stack of its parts, which add up to its length; outliers are marked."""
    figure = new_figure("Parts of each recorded step", mode, "Recorded step, in order of time", "Time (ms)")
    table = breakdown.table
    starts = group_starts(table.num_rows, MAX_BARS)
    if group_size(starts) > 1:
        add_note(figure, f"Each bar is the mean of {group_size(starts)} neighbouring steps.")
    hosts = len(set(table.column("host").to_pylist()))
    if hosts > 1:
        add_note(figure, f"The steps of {hosts} hosts stand beside each other.")
    number = column(table, "step")[starts]
    places = event_places("step", table.column("start_ns").to_numpy()[starts])
    for part in StepPart:
        part_ms = column(table, part.column, NS_PER_MS)
        if not part_ms.any():
            continue
        figure.add_bar(
            x=starts + 1,
            y=group_mean(part_ms, starts),
            customdata=number,
            ids=places,
            name=part.label,
            marker={"color": colour(part.category, mode), "line": {"width": 0}},
            hovertemplate="step %{customdata:.0f}: %{y:.3g} ms " + part.label + "<extra></extra>",
        )
    figure.update_layout(barmode="stack", bargap=0.1)
    if not isinstance(outliers, Unavailable):
        _mark_outliers(figure, breakdown, outliers, starts, mode)
    return figure


def _mark_outliers(
    figure: go.Figure, breakdown: StepBreakdown, outliers: OutlierSteps, starts: IntArray, mode: Mode
) -> None:
    step = column(breakdown.table, "step")
    length_ms = (column(breakdown.table, "end_ns") - column(breakdown.table, "start_ns")) / NS_PER_MS
    cause = _causes(breakdown.table, outliers.table)
    rows = np.array(sorted(cause), np.int64)
    rows = rows[group_starts(len(rows), MAX_MARKS)]
    if not len(rows):
        return
    figure.add_scatter(
        x=_bar_of(rows, starts),
        y=_heights(length_ms, starts)[np.searchsorted(starts, rows, side="right") - 1],
        mode="markers",
        name="outlier",
        customdata=[f"step {step[row]:.0f}, {length_ms[row]:.3g} ms: {PART_NAMES[cause[int(row)]]}" for row in rows],
        marker={"symbol": "triangle-down", "size": 9, "color": THEMES[mode].ink},
        hovertemplate="%{customdata}<extra></extra>",
    )


def _causes(steps: pa.Table, outliers: pa.Table) -> dict[int, str]:
    """Return the cause of each outlier by the row of the recorded step that holds it; outliers without a host are the job's.

    Numbers would not do: those of a rhythm begin anew in each window, and every host has its own. The moment half a usual
    step after an outlier's beginning lies inside it, even where the job's clock began a little beside the trace's.
    """
    start, end = column(steps, "start_ns"), column(steps, "end_ns")
    host = np.array(steps.column("host").to_pylist(), object)
    own = np.array(outliers.column("host").to_pylist(), object)
    moment = column(outliers, "start_ns") + column(outliers, "level_ns") / 2
    cause = np.array(outliers.column("cause").to_pylist(), object)
    found: dict[int, str] = {}
    for name in dict.fromkeys(own.tolist()):
        rows = np.flatnonzero((host == name) | (not name))
        place = np.searchsorted(start[rows], moment, side="right") - 1
        held = np.flatnonzero((own == name) & (place >= 0))
        held = held[moment[held] < end[rows[place[held]]]]
        found |= zip(rows[place[held]].tolist(), cause[held].tolist(), strict=True)
    return found


def _bar_of(rows: IntArray, starts: IntArray) -> IntArray:
    return starts[np.searchsorted(starts, rows, side="right") - 1] + 1


def _heights(length_ms: FloatArray, starts: IntArray) -> FloatArray:
    """Return where a mark sits above each bar."""
    heights = group_mean(length_ms, starts)
    return heights + 0.04 * (heights.max() if len(heights) else 0.0)
