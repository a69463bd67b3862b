"""The anatomy of a step: one strip to scale, and below it the same step with the first suggestion carried out."""

import html

import plotly.graph_objects as go

from pipeline_lab.analysis.causes import StepPart, Work
from pipeline_lab.analysis.idle.idle_gaps import IdleGaps
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.steps.step_breakdown import count_training_steps, mean_parts_ns
from pipeline_lab.analysis.verdict.verdict import Suggestion
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.theme import THEMES, Mode, add_note, color, new_figure, say
from pipeline_lab.figures.timeline_chart import KINDS, row_segments, timeline_rows
from pipeline_lab.units import NS_PER_MS, duration_unit, format_count, format_duration, format_percent

STRIP_HEIGHT = 74
NAMED_SHARE = 0.07
"""The part of the strip that has room for a name."""
LEAST_NAMED = 0.02
"""Idle time of at least this part of a step is named in the caption."""
LONGEST_CHANGE = 60
WINDOW_HEIGHT, AXIS_HEIGHT = 26, 46
MAX_SEGMENTS = 400
"""Of the window; more are joined."""


def step_anatomy(diagnosis: Diagnosis, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw what a profiled step consists of on average, to scale, and what the first suggestion would leave of it."""
    breakdown = diagnosis.step_breakdown
    if isinstance(breakdown, Unavailable):
        return breakdown
    parts = mean_parts_ns(breakdown, diagnosis.steps)
    if isinstance(parts, Unavailable):
        return parts
    count, step_ns = count_training_steps(breakdown, diagnosis.steps), sum(parts.values())
    better = diagnosis.verdict.predicted
    strips_px = STRIP_HEIGHT * (1 + (better is not None))
    figure = new_figure("What a step consists of", mode, "Time per step (ms)", "", height=112 + strips_px)
    say(figure, _what_to_see(parts))
    each = f"{format_duration(step_ns)} each" if round(count) > 1 else format_duration(step_ns)
    add_note(figure, f"{_mean_of(round(count))}, {each}.")
    start_ns = 0.0
    for part, length_ns in parts.items():
        _add_part(figure, part, start_ns, length_ns, step_ns, mode)
        start_ns += length_ns
    if better is not None:
        _add_prediction(figure, better, step_ns, mode)
    figure.update_layout(barmode="overlay", bargap=0.42, dragmode=False, uniformtext={"minsize": 10, "mode": "hide"})
    figure.update_xaxes(range=[0, step_ns / NS_PER_MS], fixedrange=True)
    figure.update_yaxes(range=[-0.5 - (better is not None), 0.6], visible=False)
    if not isinstance(diagnosis.idle_gaps, Unavailable):
        _add_window(figure, diagnosis.idle_gaps, strips_px, {part.label for part in parts}, mode)
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
    rows = timeline_rows(gaps)
    rows = [row for row in rows if row[:2] == rows[0][:2]]
    if not rows:
        return
    shown = row_segments(gaps, rows[len(rows) // 2], MAX_SEGMENTS)
    unit = duration_unit(float(shown.end_ns[-1] - shown.start_ns[0]))
    for number, kind in enumerate(KINDS):
        mine = shown.kind == number
        if not mine.any():
            continue
        figure.add_bar(
            base=(shown.start_ns[mine] - shown.start_ns[0]) / unit[0],
            x=(shown.end_ns[mine] - shown.start_ns[mine]) / unit[0],
            y=[0] * int(mine.sum()),
            orientation="h",
            name=kind.label,
            showlegend=kind is not Work.BUSY and kind.label not in named,
            marker={"color": color(kind.value, mode), "line": {"width": 0}},
            hovertemplate=f"{kind.label}: %{{x:.3g}} {unit[1]} from %{{base:.4g}} {unit[1]}<extra></extra>",
            xaxis="x2",
            yaxis="y2",
        )
    below = WINDOW_HEIGHT + AXIS_HEIGHT
    whole = strips_px + below
    figure.update_layout(
        height=figure.layout.height + below,
        yaxis_domain=[below / whole, 1],
        xaxis_anchor="y",
        yaxis2={"title": {"text": ""}, "domain": [0, WINDOW_HEIGHT / whole], "visible": False, "range": [-0.5, 0.5]},
        xaxis2={
            "anchor": "y2",
            "title": {"text": f"One recorded window ({unit[1]})"},
            "range": [0, (shown.end_ns[-1] - shown.start_ns[0]) / unit[0]],
            "fixedrange": True,
        },
    )


def _mean_of(count: int) -> str:
    return f"Mean of {format_count(count)} profiled steps" if count > 1 else "One profiled step"


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
        name="predicted",
        marker={
            "color": THEMES[mode].shade,
            "line": {"width": 2, "color": THEMES[mode].muted},
            "pattern": {"shape": "/", "fgcolor": THEMES[mode].muted, "size": 6, "solidity": 0.2},
        },
        hovertemplate=f"{suggestion.prediction}: {format_duration(left_ns)}<extra></extra>",
        showlegend=False,
    )
    figure.add_annotation(
        x=0,
        y=-0.53,
        xanchor="left",
        showarrow=False,
        text=f"{html.escape(shown)}: <b>{format_duration(left_ns)}</b> predicted, {format_percent(gain)} shorter",
        font={"size": 12},
    )
