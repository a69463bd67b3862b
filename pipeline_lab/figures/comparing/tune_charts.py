"""A search: its history, what mattered, gain against cost, and every configuration that raced, predicted beside measured."""

from html import escape
from textwrap import wrap

import numpy as np
import plotly.graph_objects as go

from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.comparing.comparison_charts import add_intervals, rows_figure
from pipeline_lab.figures.theme import Mode, add_note, color, end_axis, new_figure, say
from pipeline_lab.tuning.history import Proposed, Raced, rank_configurations
from pipeline_lab.tuning.importance import find_effects
from pipeline_lab.tuning.search_result import RecordedSearch
from pipeline_lab.tuning.space import START
from pipeline_lab.units import format_percent

MOST_ROWS = 30
LINE_CHARACTERS = 34
MOST_LINES = 3
MOST_OPTIONS = 12
MB = 1e6
NO_RACE = "Nothing was raced; with a larger budget a search races what the model proposes."


def search_places(tuning: RecordedSearch, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw each configuration's time over the start's, or the first leader's until one met the start, beside what was predicted."""
    places = rank_configurations(tuning.steps)
    found = [place for place in places.rows if place.ratio is not None]
    if not found:
        return Unavailable("No race is over yet." if tuning.state.is_live else NO_RACE)
    shown = found[:MOST_ROWS]
    labels = [_lines(place.configuration) for place in shown]
    figure = rows_figure(
        "Time per step of what raced",
        mode,
        f"Time over that of {escape(places.reference[:60])} (left is faster)",
        len(shown),
        labels=labels,
    )
    figure.update_yaxes(automargin=True, categoryorder="array", categoryarray=labels)
    known = [
        (label, place.ratio, place.low, place.high)
        for label, place in zip(labels, shown, strict=True)
        if place.ratio is not None and place.low is not None and place.high is not None
    ]
    if known:
        labels_known, ratios, low, high = zip(*known, strict=True)
        add_intervals(figure, labels_known, ratios, low, high, mode, "times", "raced, with its interval")
    unsure = [
        (label, place.ratio)
        for label, place in zip(labels, shown, strict=True)
        if place.low is None or place.high is None
    ]
    if unsure:
        figure.add_scatter(
            x=[ratio for _, ratio in unsure],
            y=[label for label, _ in unsure],
            name="raced, no interval yet",
            mode="markers",
            marker={"size": 11, "symbol": "circle-open", "color": color("busy", mode), "line": {"width": 2}},
            hovertemplate="%{y}: %{x:.3g} times, no interval yet<extra></extra>",
        )
    predicted = [(place.predicted, label) for place, label in zip(shown, labels, strict=True) if place.predicted]
    if predicted:
        figure.add_scatter(
            x=[value for value, _ in predicted],
            y=[label for _, label in predicted],
            name="predicted",
            mode="markers",
            marker={"size": 10, "symbol": "diamond-open", "color": color("input_wait", mode), "line": {"width": 2}},
            hovertemplate="%{y}: predicted %{x:.3g} times<extra></extra>",
        )
    best = shown[0]
    less = f"{format_percent(100 * abs(1 - (best.ratio or 1)))} {'less' if (best.ratio or 1) < 1 else 'more'}"
    same = best.configuration == places.reference
    say(
        figure,
        f"{escape(best.configuration)} leads: "
        + ("nothing that raced is better." if same else f"{less} time than {escape(places.reference[:60])}."),
    )
    if len(shown) < len(found):
        add_note(figure, f"The {len(found) - len(shown)} slowest are not drawn.")
    return figure


def search_history(tuning: RecordedSearch, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw every configuration in the order in which it first raced, and the best of them so far."""
    places = rank_configurations(tuning.steps)
    ratios = {place.configuration: place.ratio for place in places.rows if place.ratio is not None}
    order = dict.fromkeys(
        name
        for step in tuning.steps
        if isinstance(step, Raced)
        for name in (step.leader, *(each.configuration for each in step.standings))
        if name in ratios
    )
    names = [*([START] if START in ratios else []), *(name for name in order if name != START)]
    if not names:
        return Unavailable("No race is over yet." if tuning.state.is_live else NO_RACE)
    times = [ratios[name] for name in names]
    best = np.minimum.accumulate(times)
    figure = new_figure(
        "How the search went",
        mode,
        "Configuration, in order of time",
        f"Time per step over {escape(places.reference[:40])} (×)",
    )
    winner = None if tuning.ended is None else tuning.ended.winner
    found = (
        names.index(winner) if winner in names else int(np.argmin(times))
    )  # several may be as fast: a race chose one
    say(
        figure,
        f"The best of {len(names)} came as number {found + 1}: {times[found]:.3g} × the time per step of "
        f"{escape(places.reference[:60])}.",
    )
    numbers = list(range(1, len(names) + 1))
    figure.add_scatter(
        x=numbers,
        y=times,
        mode="markers",
        name="configuration",
        marker={"size": 10, "color": color("busy", mode)},
        hovertext=[escape(name) for name in names],
        hovertemplate="%{hovertext}: %{y:.3g} ×<extra></extra>",
    )
    figure.add_scatter(
        x=numbers,
        y=best,
        mode="lines",
        name="best so far",
        line={"color": color("input_wait", mode), "width": 2, "shape": "hv"},
        hovertemplate="best so far: %{y:.3g} ×<extra></extra>",
    )
    figure.update_xaxes(range=[0.5, len(names) + 0.5], tickformat="d", dtick=1 if len(names) < 16 else None)
    return figure


def search_importance(tuning: RecordedSearch, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw how much of the differences between the configurations each option explains."""
    effects = find_effects(tuning)
    if isinstance(effects, Unavailable):
        return effects
    shown = effects[:MOST_OPTIONS]
    names = [" + ".join(path.removeprefix("pipeline.") for path in effect.paths) for effect in shown]
    labels = [_lines(name) for name in names]
    figure = rows_figure(
        "What mattered", mode, "Share of the differences that it explains (%)", len(shown), labels=labels
    )
    figure.update_yaxes(automargin=True)
    first = shown[0]
    say(figure, f"{escape(names[0])} mattered most; the winner has {escape(first.best)}.")
    add_note(
        figure, f"From {first.configurations} configurations; options that only changed together stand in one row."
    )
    shares = [format_percent(100 * effect.share) for effect in shown]
    figure.add_bar(
        x=[100 * effect.share for effect in shown],
        y=labels,
        orientation="h",
        marker={"color": color("busy", mode), "line": {"width": 0}},
        text=shares,
        textposition="outside",
        cliponaxis=False,
        hovertext=[
            "<br>".join(f"{escape(value)}: {ratio:.3g} ×" for value, ratio in effect.values[:8]) for effect in shown
        ],
        hovertemplate="<b>%{y}</b><br>%{hovertext}<extra></extra>",
        showlegend=False,
    )
    end_axis(figure, 100.0, shares)
    return figure


def search_frontier(tuning: RecordedSearch, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw the time per step of every configuration against the memory that it holds, and those that nothing beats in both."""
    places = rank_configurations(tuning.steps)
    ratios = {place.configuration: place.ratio for place in places.rows if place.ratio is not None}
    costs = {
        pick.configuration: pick.memory_bytes / MB
        for step in tuning.steps
        if isinstance(step, Proposed)
        for pick in step.picks
        if pick.memory_bytes is not None
    }
    points = sorted((costs[name], ratio, name) for name, ratio in ratios.items() if name in costs)
    if not points:
        return Unavailable("What the configurations cost is not known, because the model made no prediction of them.")
    best = np.minimum.accumulate([ratio for _, ratio, _ in points])
    edge = [number for number in range(len(points)) if number == 0 or best[number] < best[number - 1]]
    figure = new_figure(
        "Gain against cost",
        mode,
        "Memory that the pipeline holds (MB)",
        f"Time over {escape(places.reference[:40])} (×)",
    )
    cheap, fast = points[edge[0]], points[edge[-1]]
    say(
        figure,
        f"The fastest, {fast[1]:.3g} ×, holds {fast[0]:.3g} MB; the one that holds least, {cheap[0]:.3g} MB, takes {cheap[1]:.3g} ×.",
    )
    add_note(figure, "Memory as predicted, time as raced.")
    figure.add_scatter(
        x=[points[number][0] for number in edge],
        y=[points[number][1] for number in edge],
        mode="lines",
        name="nothing beats these in both",
        line={"color": color("input_wait", mode), "width": 2, "shape": "hv"},
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=[cost for cost, _, _ in points],
        y=[ratio for _, ratio, _ in points],
        mode="markers",
        name="configuration",
        marker={"size": 10, "color": color("busy", mode)},
        hovertext=[escape(name) for _, _, name in points],
        hovertemplate="%{hovertext}: %{y:.3g} ×, %{x:.3g} MB<extra></extra>",
    )
    return figure


def _lines(name: str) -> str:
    """Break the name of a configuration into lines that stand beside its row."""
    return "<br>".join(wrap(escape(name), LINE_CHARACTERS, max_lines=MOST_LINES, placeholder=" …"))
