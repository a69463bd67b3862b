"""Where the time went: idle time by cause, the parts of the steps, of each in the order of time, and of several hosts."""

import html

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa

from pipeline_lab.analysis.activity.activity import HOST_COMPUTE
from pipeline_lab.analysis.causes import GapCause, StepPart
from pipeline_lab.analysis.idle.idle_gaps import IdleGaps
from pipeline_lab.analysis.steps.outlier_steps import OutlierSteps
from pipeline_lab.analysis.steps.step_breakdown import StepBreakdown
from pipeline_lab.analysis.steps.stragglers import Hosts
from pipeline_lab.analysis.verdict.findings import PART_NAMES
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.aggregate import FloatArray, IntArray, column, group_mean, group_size, group_starts
from pipeline_lab.figures.marks import event_places
from pipeline_lab.figures.theme import FEW, HEIGHT, THEMES, Mode, add_note, color, end_axis, new_figure, say
from pipeline_lab.units import NS_PER_MS, duration_unit, format_duration, format_duration_in, format_percent

ROW_HEIGHT = 34
STRIP_HEIGHT = 24
"""Pixels of a recorded step that lies as a strip below others."""

SHOWN_OPERATIONS = 3
"""Host operations named when one points at a cause."""


def idle_by_cause(gaps: IdleGaps, mode: Mode = "light") -> go.Figure:
    """Draw how long the device idled for each cause inside the profile windows."""
    inside = gaps.idle_by_cause_ns
    rows = [(cause.label, time_ns, cause.value) for cause, time_ns in inside.items() if time_ns > 0]
    figure = _bars("Idle time by cause", rows, gaps.window_ns, "of the windows", mode)
    longest = max(rows, key=lambda row: row[1], default=None)
    say(
        figure,
        "The device never idled in the windows."
        if longest is None
        else f"{longest[0].capitalize()} costs most: {format_percent(100 * longest[1] / gaps.window_ns)} of the recorded time.",
    )
    operations = {cause.label: _operations(gaps, cause) for cause in inside}
    figure.data[0].customdata = [operations[name] for name in figure.data[0].y]
    figure.data[0].hovertemplate = "%{y}: %{text} of the windows%{customdata}<extra></extra>"
    if gaps.device == HOST_COMPUTE:
        add_note(figure, "No device in the trace: host compute stands for it.")
    return figure


def _operations(gaps: IdleGaps, cause: GapCause) -> str:
    """Return lines that name the host operations which ran in the idle moments of one cause, the longest first."""
    mine = [one for one in gaps.by_operation if one.cause is cause][:SHOWN_OPERATIONS]
    return "".join(f"<br>{one.operation}: {format_duration(one.idle_ns)}" for one in mine)


def _bars(title: str, rows: list[tuple[str, int, str]], whole_ns: int, of: str, mode: Mode) -> go.Figure:
    rows = sorted(rows, key=lambda row: row[1])
    longest = max((time_ns for _, time_ns, _ in rows), default=0)
    unit = duration_unit(longest)
    figure = new_figure(title, mode, f"Device idle ({unit[1]})", "", height=120 + ROW_HEIGHT * max(2, len(rows)))
    shares = [format_percent(100 * time_ns / whole_ns) if whole_ns else "" for _, time_ns, _ in rows]
    labels = [f"{format_duration_in(row[1], unit)} · {share}" for row, share in zip(rows, shares, strict=True)]
    figure.add_bar(
        y=[name for name, _, _ in rows],
        x=[time_ns / unit[0] for _, time_ns, _ in rows],
        orientation="h",
        marker={"color": [color(category, mode) for _, _, category in rows]},
        text=labels,
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{y}: %{text} " + of + "<extra></extra>",
        showlegend=False,
    )
    end_axis(figure, longest / unit[0], labels)
    figure.update_yaxes(showgrid=False)
    figure.update_layout(dragmode=False)
    return figure


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
        add_note(figure, f"Each bar is the mean of {group_size(starts)} neighboring steps.")
    hosts = len(set(table.column("host").to_pylist()))
    if hosts > 1:
        add_note(figure, f"The steps of {hosts} hosts stand beside each other.")
    say(figure, _what_varies(table))
    number = column(table, "step")[starts]
    places = event_places("step", table.column("start_ns").to_numpy()[starts])
    is_few = table.num_rows < FEW
    across, along = ("y", "x") if is_few else ("x", "y")  # few steps lie below each other, as strips to scale
    for part in StepPart:
        part_ms = column(table, part.column, NS_PER_MS)
        if not part_ms.any():
            continue
        figure.add_bar(
            **{across: starts + 1, along: group_mean(part_ms, starts)},
            orientation="h" if is_few else "v",
            customdata=number,
            ids=places,
            name=part.label,
            marker={"color": color(part.category, mode), "line": {"width": 0}},
            hovertemplate=f"step %{{customdata:.0f}}: %{{{along}:.3g}} ms {part.label}<extra></extra>",
        )
    figure.update_layout(barmode="stack", bargap=0.3 if is_few else 0.1)
    if is_few:
        figure.update_layout(
            height=figure.layout.height - HEIGHT + 130 + STRIP_HEIGHT * table.num_rows,
            xaxis={"title": {"text": "Time (ms)"}},
            yaxis={
                "title": {"text": "Recorded step, in order of time"},
                "range": [table.num_rows + 0.5, 0.5],
                "dtick": 1,
                "showgrid": False,
            },
        )
    if not isinstance(outliers, Unavailable):
        _mark_outliers(figure, breakdown, outliers, starts, mode)
    return figure


def _what_varies(steps: pa.Table) -> str:
    """Say how long the steps are, and which of their parts differs most between them."""
    length_ns = column(steps, "end_ns") - column(steps, "start_ns")
    if len(length_ns) < 2:
        return f"One step was recorded: {format_duration(length_ns.sum())}."
    spread = {part: float(np.std(column(steps, part.column))) for part in StepPart}
    most = max(spread, key=spread.__getitem__)
    between = f"Steps take {format_duration(length_ns.min())} to {format_duration(length_ns.max())}"
    return f"{between}; {most.label} varies most." if spread[most] else f"{between}."


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
    bars, ends = _bar_of(rows, starts), _heights(length_ms, starts)[np.searchsorted(starts, rows, side="right") - 1]
    is_few = breakdown.table.num_rows < FEW
    figure.add_scatter(
        x=ends if is_few else bars,
        y=bars if is_few else ends,
        mode="markers",
        name="outlier",
        customdata=[f"step {step[row]:.0f}, {length_ms[row]:.3g} ms: {PART_NAMES[cause[int(row)]]}" for row in rows],
        marker={"symbol": "triangle-left" if is_few else "triangle-down", "size": 9, "color": THEMES[mode].ink},
        hovertemplate="%{customdata}<extra></extra>",
    )


def _causes(steps: pa.Table, outliers: pa.Table) -> dict[int, str]:
    """Return the cause of each outlier by the row of the recorded step that holds it; outliers without a host are the job's.

    Numbers would not do: those of a rhythm start over in each window, and every host has its own. The moment half a usual
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


MAX_HOSTS = 32


def hosts_side_by_side(hosts: Hosts, mode: Mode = "light") -> go.Figure:
    """Draw the median step of each host, divided into input wait, other time of its own, and collectives."""
    table = hosts.table
    order = np.argsort(-column(table, "held_up_ns"), kind="stable")[:MAX_HOSTS]
    figure = new_figure("Step of each host", mode, "Median step (ms)", "", height=150 + 30 * max(2, len(order)))
    wait = column(table, "input_wait_ns", NS_PER_MS)[order]
    parts = (
        ("input wait", wait, "input_wait"),
        ("other time of its own", np.maximum(column(table, "own_ns", NS_PER_MS)[order] - wait, 0), "busy"),
        ("collectives: waiting for others", column(table, "collective_ns", NS_PER_MS)[order], "collective"),
    )
    names = [str(table.column("host")[int(row)]) for row in order]
    last = [f"{table.column('last_in')[int(row)]} of {hosts.common_steps}" for row in order]
    for name, value, category in parts:
        figure.add_bar(
            y=names,
            x=value,
            orientation="h",
            name=name,
            customdata=last,
            marker={"color": color(category, mode)},
            hovertemplate="%{y}: %{x:.3g} ms " + name + "<br>comes last in %{customdata} steps<extra></extra>",
        )
    figure.update_layout(barmode="stack", dragmode=False)
    figure.update_yaxes(autorange="reversed", showgrid=False, type="category")
    straggler = hosts.straggler
    say(figure, f"{html.escape(straggler)} holds the others back." if straggler else "No host holds the others back.")
    if table.num_rows > MAX_HOSTS:
        add_note(figure, f"The {MAX_HOSTS} of {table.num_rows} hosts that cost the others most.")
    return figure
