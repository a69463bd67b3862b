"""The anatomy of a step: one strip to scale, and below it the same step with the first suggestion carried out."""

import html

import plotly.graph_objects as go

from pipeline_lab.analysis.causes import StepPart
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.analysis.steps.step_breakdown import StepBreakdown
from pipeline_lab.analysis.verdict.verdict import Suggestion
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.theme import THEMES, Mode, add_note, color, new_figure, say
from pipeline_lab.units import NS_PER_MS, format_count, format_duration, format_percent

STRIP_HEIGHT = 74
NAMED_SHARE = 0.07
"""The part of the strip that has room for a name."""
LONGEST_CHANGE = 60


def step_anatomy(diagnosis: Diagnosis, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw what a profiled step consists of on average, to scale, and what the first suggestion would leave of it."""
    parts, breakdown = mean_parts_ns(diagnosis), diagnosis.step_breakdown
    if isinstance(parts, Unavailable) or isinstance(breakdown, Unavailable):
        return parts if isinstance(parts, Unavailable) else diagnosis.step_breakdown
    count, step_ns = _count_steps(breakdown, diagnosis.steps), sum(parts.values())
    better = next(filter(_is_predicted, diagnosis.verdict.suggestions), None)
    figure = new_figure(
        "What a step consists of",
        mode,
        "Time per step (ms)",
        "",
        height=112 + STRIP_HEIGHT * (1 + (better is not None)),
    )
    longest = max(parts, key=parts.__getitem__)
    share = format_percent(100 * parts[longest] / step_ns)
    say(figure, f"{longest.label.capitalize()} fills {share} of a step.")
    add_note(figure, f"Mean of {format_count(round(count))} profiled steps, {format_duration(step_ns)} each.")
    start_ns = 0.0
    for part, length_ns in parts.items():
        _add_part(figure, part, start_ns, length_ns, step_ns, mode)
        start_ns += length_ns
    if better is not None:
        _add_prediction(figure, better, step_ns, mode)
    figure.update_layout(barmode="overlay", bargap=0.42, dragmode=False, uniformtext={"minsize": 10, "mode": "hide"})
    figure.update_xaxes(range=[0, step_ns / NS_PER_MS], fixedrange=True)
    figure.update_yaxes(range=[-0.5 - (better is not None), 0.6], visible=False)
    return figure


def mean_parts_ns(diagnosis: Diagnosis) -> dict[StepPart, float] | Unavailable:
    """Return how long each part of a profiled training step takes on average, in their order; parts that take nothing left out."""
    breakdown = diagnosis.step_breakdown
    if isinstance(breakdown, Unavailable):
        return breakdown
    count = _count_steps(breakdown, diagnosis.steps)
    if not count or not breakdown.total_ns:
        return Unavailable("The profiled steps have no length; run it again with longer windows.")
    return {part: length / count for part in StepPart if (length := breakdown.parts_ns[part.column])}


def _count_steps(breakdown: StepBreakdown, steps: Steps | Unavailable) -> float:
    """Return how many training steps the parts add up to; a marked step may hold several."""
    if isinstance(steps, Unavailable):
        return float(breakdown.table.num_rows)
    return (breakdown.table.num_rows or steps.count) * (steps.steps_per_marker or 1.0)


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


def _is_predicted(suggestion: Suggestion) -> bool:
    return bool(suggestion.prediction) and suggestion.options is not None


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
