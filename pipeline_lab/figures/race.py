"""A race: each candidate's ratio with its interval, and what a step of each arm consists of."""

import math

import numpy as np
import plotly.graph_objects as go

from pipeline_lab.comparison.race import Race
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.comparison import add_bars, mark_zero, rows_figure
from pipeline_lab.figures.run_panels import short_labels
from pipeline_lab.figures.theme import THEMES, Mode, add_key, add_note, colour
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
        marker={"size": 11, "color": colour("busy", mode)},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": high - percent,
            "arrayminus": percent - low,
            "color": colour("busy", mode),
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
    """Put a grey band behind the differences that are too small to matter."""
    low = 100 * (1 / (1 + margin_percent / 100) - 1)
    figure.add_vrect(x0=low, x1=margin_percent, fillcolor=THEMES[mode].shade, line_width=0, layer="below")
    add_key(figure, "too small to matter", mode)
