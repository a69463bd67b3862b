"""A race while it goes on: how the interval of each candidate closed in, look by look."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from pipeline_lab.comparison.arm_names import name_arms
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.run_panels import short_labels
from pipeline_lab.figures.theme import THEMES, Mode, add_key, colour, new_figure
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.runs.events import RaceEvent

CATEGORIES = ("busy", "input_wait", "host_operation", "compile", "dispatch", "python", "unknown")
"""One colour per candidate; a race has at most seven."""
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
        marker={"size": 7, "color": colour(category, mode)},
        line={"width": 1, "dash": "dot", "color": colour(category, mode)},
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [end - middle for middle, end in zip(percent, high, strict=True)],
            "arrayminus": [middle - start for middle, start in zip(percent, low, strict=True)],
            "color": colour(category, mode),
            "thickness": 2,
            "width": 5,
        },
        customdata=[
            [f"{start:.3g} % to {end:.3g} %", look["pairs"]] for look, start, end in zip(looks, low, high, strict=True)
        ],
        hovertemplate="%{y:.3g} %, interval %{customdata[0]}, after %{customdata[1]} pairs<extra>%{fullData.name}</extra>",
        showlegend=True,
    )
