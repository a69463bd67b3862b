"""A race: each candidate's ratio with its interval, what a step of each arm consists of, and how the intervals close in."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from pipeline_lab.comparison.race_arms import name_arms
from pipeline_lab.comparison.race_result import Race
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.comparison_charts import add_bars, mark_zero, rows_figure
from pipeline_lab.figures.panels import short_labels
from pipeline_lab.figures.theme import THEMES, Mode, add_key, add_note, color, new_figure
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.runs.run_events import RaceEvent
from pipeline_lab.statistics.sequential import SequentialResult
from pipeline_lab.units import NS_PER_MS


def race_intervals(race: Race, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw each candidate's time, per step or per example, as a difference from the baseline's, with interval and margin."""
    labels = short_labels([candidate.name for candidate in race.candidates])
    found = [
        (label, candidate.standing.result)
        for label, candidate in zip(labels, race.candidates, strict=True)
        if candidate.standing.result is not None and _excludes_anything(candidate.standing.result)
    ]
    if not found:
        return Unavailable("The race ended before it could exclude anything; let it go on for more rounds.")
    figure = rows_figure(
        f"Time per {race.options.per} against the baseline", mode, "Difference (%; left is faster)", len(found)
    )
    percent, low, high = (
        np.array([100 * (getattr(result, name) - 1) for _, result in found]) for name in ("ratio", "low", "high")
    )
    figure.add_scatter(
        x=percent,
        y=[label for label, _ in found],
        mode="markers",
        marker={"size": 11, "color": color("busy", mode)},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": high - percent,
            "arrayminus": percent - low,
            "color": color("busy", mode),
            "thickness": 2,
            "width": 6,
        },
        hovertemplate="%{y}: %{x:.3g} %<extra></extra>",
        showlegend=False,
    )
    _shade_margin(figure, race.options.margin_percent, mode)
    mark_zero(figure, mode)
    alpha = found[0][1].alpha
    add_note(figure, f"Bars: {100 * (1 - alpha):.4g} % interval, valid at whatever moment the race stopped.")
    if len(found) < len(labels):
        add_note(figure, f"{len(labels) - len(found)} are not known well enough to draw.")
    return figure


def race_steps(race: Race, mode: Mode = "light") -> go.Figure:
    """Draw the mean step of each arm: its wait for the batch, and the rest."""
    labels = short_labels([arm.name for arm in race.arms])
    figure = rows_figure("What a step takes", mode, "Mean time per step (ms)", len(labels))
    wait = np.array([arm.wait_ns for arm in race.arms]) / NS_PER_MS
    step = np.array([arm.step_ns for arm in race.arms]) / NS_PER_MS
    add_bars(figure, labels, wait, "waiting for the batch", "input_wait", mode)
    add_bars(figure, labels, step - wait, "training", "busy", mode)
    return figure


def _excludes_anything(result: SequentialResult) -> bool:
    return result.low > 0 and not math.isinf(result.high)


def _shade_margin(figure: go.Figure, margin_percent: float, mode: Mode) -> None:
    """Put a gray band behind the differences that are too small to matter."""
    low = 100 * (1 / (1 + margin_percent / 100) - 1)
    figure.add_vrect(x0=low, x1=margin_percent, fillcolor=THEMES[mode].shade, line_width=0, layer="below")
    add_key(figure, "too small to matter", mode)


CATEGORIES = ("busy", "input_wait", "host_operation", "compile", "dispatch", "python", "unknown")
"""One color per candidate; a race has at most seven."""
SPREAD = 0.18
"""Candidates stand this far apart at the same look, in pairs, so that their bars do not hide each other."""


def closing_intervals(
    events: Sequence[RaceEvent], options: RaceOptions, mode: Mode = "light"
) -> go.Figure | Unavailable:
    """Draw each candidate's difference from the baseline with its interval after every look so far."""
    looks = {arm: _looks(events, arm) for arm in range(1, len(options.arms))}
    if not any(looks.values()):
        return Unavailable("Nothing is excluded yet; the first interval comes after a few rounds.")
    figure = new_figure(
        "How the intervals close in", mode, "Paired rounds that count", f"Time per {options.per} (%; below 0 is faster)"
    )
    labels = short_labels(list(name_arms(options)[1:]))
    for number, (label, seen) in enumerate(zip(labels, looks.values(), strict=True)):
        _add_candidate(figure, label, seen, CATEGORIES[number], (number - (len(labels) - 1) / 2) * SPREAD, mode)
    margin = options.margin_percent
    low = 100 * (1 / (1 + margin / 100) - 1)
    figure.add_hrect(y0=low, y1=margin, fillcolor=THEMES[mode].shade, line_width=0, layer="below")
    figure.add_hline(y=0, line={"color": THEMES[mode].muted, "width": 1})
    add_key(figure, "too small to matter", mode)
    figure.update_yaxes(rangemode="normal", zeroline=False)
    figure.update_xaxes(range=[0, options.pairs + 1])
    return figure


def _looks(events: Sequence[RaceEvent], arm: int) -> list[dict[str, Any]]:
    """Return a candidate's standings that exclude something on both sides, one per look, in their order."""
    found = {}
    for event in events:
        for standing in event.standings:
            if standing["arm"] == arm and None not in (standing["ratio"], standing["low"], standing["high"]):
                found[standing["pairs"]] = standing
    return list(found.values())


def _add_candidate(
    figure: go.Figure, label: str, looks: list[dict[str, Any]], category: str, offset: float, mode: Mode
) -> None:
    percent, low, high = ([100 * (look[name] - 1) for look in looks] for name in ("ratio", "low", "high"))
    figure.add_scatter(
        x=[look["pairs"] + offset for look in looks],
        y=percent,
        name=label,
        mode="lines+markers",
        marker={"size": 7, "color": color(category, mode)},
        line={"width": 1, "dash": "dot", "color": color(category, mode)},
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [end - middle for middle, end in zip(percent, high, strict=True)],
            "arrayminus": [middle - start for middle, start in zip(percent, low, strict=True)],
            "color": color(category, mode),
            "thickness": 2,
            "width": 5,
        },
        customdata=[
            [f"{start:.3g} % to {end:.3g} %", look["pairs"]] for look, start, end in zip(looks, low, high, strict=True)
        ],
        hovertemplate="%{y:.3g} %, interval %{customdata[0]}, after %{customdata[1]} pairs<extra>%{fullData.name}</extra>",
        showlegend=True,
    )
