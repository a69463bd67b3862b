"""A search: every configuration that raced, predicted beside measured."""

from html import escape
from textwrap import wrap

import plotly.graph_objects as go

from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.comparison_charts import rows_figure
from pipeline_lab.figures.theme import Mode, add_note, color
from pipeline_lab.tuning.history import rank_configurations
from pipeline_lab.tuning.search_result import Tuning

MOST_ROWS = 30
LINE_CHARACTERS = 34
MOST_LINES = 3
NO_RACE = "Nothing was raced; with a larger budget a search races what the model proposes."


def search_places(tuning: Tuning, mode: Mode = "light") -> go.Figure | Unavailable:
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
    )
    figure.update_yaxes(automargin=True, categoryorder="array", categoryarray=labels)
    known = [
        (label, place.ratio, place.low, place.high)
        for label, place in zip(labels, shown, strict=True)
        if place.ratio is not None and place.low is not None and place.high is not None
    ]
    if known:
        figure.add_scatter(
            x=[ratio for _, ratio, _, _ in known],
            y=[label for label, _, _, _ in known],
            name="raced, with its interval",
            mode="markers",
            marker={"size": 11, "color": color("busy", mode)},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [high - ratio for _, ratio, _, high in known],
                "arrayminus": [ratio - low for _, ratio, low, _ in known],
                "color": color("busy", mode),
                "thickness": 2,
                "width": 6,
            },
            hovertemplate="%{y}: %{x:.3g} times<extra></extra>",
        )
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
    if len(shown) < len(found):
        add_note(figure, f"The {len(found) - len(shown)} slowest are not drawn.")
    return figure


def _lines(name: str) -> str:
    """Break the name of a configuration into lines that stand beside its row."""
    return "<br>".join(wrap(escape(name), LINE_CHARACTERS, max_lines=MOST_LINES, placeholder=" …"))
