"""Where the time went: idle time by cause, and the parts of the steps."""

import plotly.graph_objects as go

from pipeline_lab.analysis.causes import GapCause, StepPart
from pipeline_lab.analysis.idle_gaps import IdleGaps
from pipeline_lab.analysis.step_breakdown import StepBreakdown
from pipeline_lab.figures.theme import Mode, add_note, colour, new_figure
from pipeline_lab.units import NS_PER_S, format_duration, format_percent

ROW_HEIGHT = 34

SHOWN_OPERATIONS = 3
"""Host operations named when one points at a cause."""


def idle_by_cause(gaps: IdleGaps, mode: Mode = "light") -> go.Figure:
    """Draw how long the device idled for each cause inside the profile windows."""
    inside = gaps.idle_by_cause_ns
    rows = [(cause.label, time_ns, cause.value) for cause, time_ns in inside.items() if time_ns > 0]
    figure = _bars("Idle time by cause", rows, gaps.window_ns, "of the windows", mode)
    figure.update_xaxes(title_text="Device idle (s)")
    operations = {cause.label: _operations(gaps, cause) for cause in inside}
    figure.data[0].customdata = [operations[name] for name in figure.data[0].y]
    figure.data[0].hovertemplate = "%{y}: %{text} of the windows%{customdata}<extra></extra>"
    if gaps.device == "host compute":
        add_note(figure, "No device in the trace: host compute stands for it.")
    return figure


def step_parts(breakdown: StepBreakdown, mode: Mode = "light") -> go.Figure:
    """Draw what the profiled steps consist of; the parts add up to all of their time."""
    rows = [(part.label, breakdown.parts_ns[part.column], part.category) for part in StepPart]
    total_ns = sum(time_ns for _, time_ns, _ in rows)
    return _bars(
        "What the profiled steps consist of", [row for row in rows if row[1] > 0], total_ns, "of the steps", mode
    )


def _operations(gaps: IdleGaps, cause: GapCause) -> str:
    """Return lines that name the host operations which ran in the idle moments of one cause, the longest first."""
    mine = [one for one in gaps.by_operation if one.cause is cause][:SHOWN_OPERATIONS]
    return "".join(f"<br>{one.operation}: {format_duration(one.idle_ns)}" for one in mine)


def _bars(title: str, rows: list[tuple[str, int, str]], whole_ns: int, of: str, mode: Mode) -> go.Figure:
    rows = sorted(rows, key=lambda row: row[1])
    figure = new_figure(title, mode, "Time (s)", "", height=120 + ROW_HEIGHT * max(2, len(rows)))
    shares = [format_percent(100 * time_ns / whole_ns) if whole_ns else "" for _, time_ns, _ in rows]
    figure.add_bar(
        y=[name for name, _, _ in rows],
        x=[time_ns / NS_PER_S for _, time_ns, _ in rows],
        orientation="h",
        marker={"color": [colour(category, mode) for _, _, category in rows]},
        text=[f"{format_duration(row[1])} · {share}" for row, share in zip(rows, shares, strict=True)],
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{y}: %{text} " + of + "<extra></extra>",
        showlegend=False,
    )
    longest = max((time_ns for _, time_ns, _ in rows), default=0) / NS_PER_S
    figure.update_xaxes(range=[0, longest * 1.45 or 1])
    figure.update_yaxes(showgrid=False)
    figure.update_layout(dragmode=False)
    return figure
