"""The anatomy of a step: one strip to scale, and below it the same step with the first suggestion carried out."""

import html
from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from pipeline_lab.analysis.causes import StepPart, Work
from pipeline_lab.analysis.idle.idle_gaps import IdleGaps
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.steps.step_breakdown import StepBreakdown, count_training_steps
from pipeline_lab.analysis.verdict.losses import deciding_breakdown, judged_parts_ns
from pipeline_lab.analysis.verdict.verdict import Suggestion
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.theme import THEMES, Mode, add_note, color, new_figure, say
from pipeline_lab.figures.timeline_chart import KINDS, Segments, row_segments, timeline_rows
from pipeline_lab.units import NS_PER_MS, duration_unit, format_count, format_duration, format_percent

STRIP_HEIGHT = 62
NAMED_SHARE = 0.07
"""The part of the strip that has room for a name."""
LEAST_SEEN = 0.004
"""A smaller part of a strip is thinner than two pixels of a phone's screen; the legend leaves its color out."""
LEAST_NAMED = 0.02
"""Idle time of at least this part of a step is named in the caption."""
LONGEST_CHANGE = 60
PREDICTED = "predicted"
"""Name of the second strip, and of the words above it, which name the change; a page that does so itself shortens them."""
WINDOW_HEIGHT, AXIS_HEIGHT = 26, 46
MAX_SEGMENTS = 400
"""Of the window; more are joined."""


def step_anatomy(diagnosis: Diagnosis, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw what a profiled step consists of on average, to scale, and what the first suggestion would leave of it."""
    breakdown = diagnosis.step_breakdown
    if isinstance(breakdown, Unavailable):
        return breakdown
    parts = judged_parts_ns(diagnosis)
    if isinstance(parts, Unavailable):
        return parts
    step_ns = sum(parts.values())
    better = diagnosis.verdict.predicted
    seen = {part.label for part, length_ns in parts.items() if length_ns >= LEAST_SEEN * step_ns}
    strips_px = STRIP_HEIGHT * (1 + (better is not None))
    figure = new_figure("What a step consists of", mode, "Time per step (ms)", "", height=112 + strips_px)
    say(figure, _what_to_see(parts))
    add_note(figure, f"{_mean_of(breakdown, diagnosis)}.")
    start_ns = 0.0
    for part, length_ns in parts.items():
        _add_part(figure, part, start_ns, length_ns, step_ns, mode)
        start_ns += length_ns
    if better is not None:
        _add_prediction(figure, better, step_ns, mode)
    figure.update_layout(barmode="overlay", bargap=0.42, dragmode=False, uniformtext={"minsize": 10, "mode": "hide"})
    figure.update_xaxes(range=[0, step_ns / NS_PER_MS], fixedrange=True)
    figure.update_yaxes(range=[-0.5 - (better is not None), 0.45], visible=False)
    if not isinstance(diagnosis.idle_gaps, Unavailable):
        _add_window(figure, diagnosis.idle_gaps, strips_px, seen, mode)
    return figure


def _add_window(figure: go.Figure, gaps: IdleGaps, strips_px: int, named: set[str], mode: Mode) -> None:
    """Draw below the step when the device worked and waited in one recorded window, the middle one, to scale.

    Args:
        figure: Of the step, with what the legend names.
        gaps: Of all windows.
        strips_px: Height of what is drawn of the step.
        named: What the legend names already.
        mode: Light or dark.
    """
    window = middle_window(gaps)
    if window is not None:
        add_windows(figure, {"": window}, "One recorded window", strips_px, named, mode)


def middle_window(gaps: IdleGaps) -> Segments | None:
    """Return what the first device did in the window in the middle of its run; None where nothing was recorded."""
    rows = timeline_rows(gaps)
    rows = [row for row in rows if row[:2] == rows[0][:2]]
    return row_segments(gaps, rows[len(rows) // 2], MAX_SEGMENTS) if rows else None


def shortest_ns(windows: Mapping[str, Segments]) -> float:
    """Return the length of the shortest window."""
    return min(float(each.end_ns[-1] - each.start_ns[0]) for each in windows.values())


def add_windows(
    figure: go.Figure, windows: Mapping[str, Segments], title: str, strips_px: int, named: set[str], mode: Mode
) -> None:
    """Draw below the strips of a chart when devices worked and waited, a row each, as long as the shortest window.

    Args:
        figure: Of the strips, with what the legend names.
        windows: By the label of their row; one alone has none.
        title: Of their axis, without its unit.
        strips_px: Height of what is drawn of the strips.
        named: What the legend names already.
        mode: Light or dark.
    """
    length_ns = shortest_ns(windows)
    unit = duration_unit(length_ns)
    for number, kind in enumerate(KINDS):
        base: list[float] = []
        length: list[float] = []
        rows: list[int] = []
        for row, each in enumerate(windows.values()):
            mine = each.kind == number
            starts = np.minimum(each.start_ns[mine] - each.start_ns[0], length_ns)
            ends = np.minimum(each.end_ns[mine] - each.start_ns[0], length_ns)
            inside = ends > starts
            base.extend(starts[inside] / unit[0])
            length.extend((ends - starts)[inside] / unit[0])
            rows.extend([row] * int(inside.sum()))
        if not base:
            continue
        is_seen = bool(sum(length) * unit[0] >= LEAST_SEEN * length_ns)
        figure.add_bar(
            base=base,
            x=length,
            y=rows,
            orientation="h",
            name=kind.label,
            showlegend=is_seen and kind is not Work.BUSY and kind.label not in named,
            marker={"color": color(kind.value, mode), "line": {"width": 0}},
            hovertemplate=f"{kind.label}: %{{x:.3g}} {unit[1]} from %{{base:.4g}} {unit[1]}<extra></extra>",
            xaxis="x2",
            yaxis="y2",
        )
    rows_px = WINDOW_HEIGHT * len(windows)
    below = rows_px + AXIS_HEIGHT
    whole = strips_px + below
    figure.update_layout(
        height=figure.layout.height + below,
        yaxis_domain=[below / whole, 1],
        xaxis_anchor="y",
        yaxis2={
            "title": {"text": ""},
            "domain": [0, rows_px / whole],
            "visible": len(windows) > 1,
            "range": [len(windows) - 0.5, -0.5],
            "tickvals": list(range(len(windows))),
            "ticktext": list(windows),
            "showgrid": False,
            "zeroline": False,
        },
        xaxis2={
            "anchor": "y2",
            "title": {"text": f"{title} ({unit[1]})"},
            "range": [0, length_ns / unit[0]],
            "fixedrange": True,
        },
    )


def _mean_of(breakdown: StepBreakdown, diagnosis: Diagnosis) -> str:
    hosts = diagnosis.hosts
    if deciding_breakdown(diagnosis) is not breakdown and not isinstance(hosts, Unavailable):
        return f"Mean of {format_count(hosts.common_steps)} recorded steps, each of the host that came last"
    count = round(count_training_steps(breakdown, diagnosis.steps))
    return f"Mean of {format_count(count)} recorded steps" if count > 1 else "One recorded step"


def _what_to_see(parts: dict[StepPart, float]) -> str:
    """Name what the device waits for most, beside its work."""
    step_ns = sum(parts.values())
    idle = {part: length for part, length in parts.items() if part.cause is not None}
    lost = max(idle, key=idle.__getitem__, default=None)
    longest = max(parts, key=parts.__getitem__)
    of_longest = f"{longest.label.capitalize()} fills {format_percent(100 * parts[longest] / step_ns)} of a step"
    if lost is None or lost is longest or parts[lost] < LEAST_NAMED * step_ns:
        return f"{of_longest}."
    return f"{of_longest}, {lost.label} {format_percent(100 * parts[lost] / step_ns)}."


def _add_part(figure: go.Figure, part: StepPart, start_ns: float, length_ns: float, step_ns: float, mode: Mode) -> None:
    share, length = length_ns / step_ns, format_duration(length_ns)
    figure.add_bar(
        base=[start_ns / NS_PER_MS],
        x=[length_ns / NS_PER_MS],
        y=[0],
        orientation="h",
        name=part.label,
        marker={"color": color(part.category, mode), "line": {"width": 1, "color": THEMES[mode].paper}},
        text=[f"<b>{length}</b>" if share >= NAMED_SHARE else ""],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        showlegend=bool(share >= LEAST_SEEN),
        hovertemplate=f"{part.label}: {length}, {format_percent(100 * share)} of the step<extra></extra>",
    )


def _add_prediction(figure: go.Figure, suggestion: Suggestion, step_ns: float, mode: Mode) -> None:
    gain = suggestion.predicted_gain_percent
    assert not isinstance(gain, Unavailable)
    left_ns = step_ns * (1 - gain / 100)
    change = suggestion.change.rstrip(".")
    shown = change if len(change) <= LONGEST_CHANGE else change[: LONGEST_CHANGE - 1].rstrip() + "…"
    figure.add_bar(
        x=[left_ns / NS_PER_MS],
        y=[-1],
        orientation="h",
        name=PREDICTED,
        marker={
            "color": THEMES[mode].shade,
            "line": {"width": 2, "color": THEMES[mode].muted},
            "pattern": {"shape": "/", "fgcolor": THEMES[mode].muted, "size": 6, "solidity": 0.2},
        },
        hovertemplate=f"{suggestion.prediction}: {format_duration(left_ns)}<extra></extra>",
        showlegend=False,
    )
    figure.add_annotation(
        name=PREDICTED,
        x=0,
        y=-0.53,
        xanchor="left",
        showarrow=False,
        text=f"{html.escape(shown)}: <b>{format_duration(left_ns)}</b> predicted, {format_percent(gain)} shorter",
        font={"size": 12},
    )
