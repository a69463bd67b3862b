"""Charts on a page: drawn in the page's mode, described for those who cannot see them, absent with a reason."""

from collections.abc import Callable, Mapping
from functools import partial

import plotly.graph_objects as go
import streamlit as st

from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.chart_list import Topic, charts_of
from pipeline_lab.figures.marks import add_row_targets
from pipeline_lab.ui import state
from pipeline_lab.ui.text import prose
from pipeline_lab.ui.timeline import jump

CONFIG = {"displaylogo": False, "modeBarButtons": [["toImage", "resetScale2d"]]}
"""Few buttons: each is a stop of the Tab key. Dragging zooms, a double click resets."""


def show_section(section: Topic, diagnosis: Diagnosis, below: Mapping[str, Callable[[], None]]) -> None:
    """Show all charts of one section; then, folded where there are some, why others are not there.

    Args:
        section: Whose charts.
        diagnosis: What they show.
        below: By a chart's name, what shows something right below it.
    """
    missing: dict[str, str] = {}  # the chart by its reason: several may lack the same thing
    drawn = 0
    for chart in charts_of(section):
        drawing = chart.draw(diagnosis, state.mode())
        if isinstance(drawing, Unavailable):
            missing.setdefault(drawing.reason, chart.name)
        else:
            _show_leading(drawing, chart.name, chart.description)
            if chart.name in below:
                below[chart.name]()
            drawn += 1
    if missing and drawn:
        with st.expander(f"Not measured ({len(missing)})"):
            _show_missing(missing)
    else:
        _show_missing(missing)


def show_figure(figure: go.Figure, name: str, description: str) -> None:
    title = figure.layout.title.text
    st.plotly_chart(figure, theme=None, key=f"chart-{name}", config=CONFIG, alt=f"{title}. {description}")


def _show_leading(figure: go.Figure, name: str, description: str) -> None:
    """Show a figure of one run; a mark that stands for a place in its timeline or for a stage leads there."""
    add_row_targets(figure)
    places = [trace.ids if hasattr(trace, "ids") else None for trace in figure.data]
    if all(each is None for each in places):
        show_figure(figure, name, description)
        return
    key = f"chart-{name}-{jump.asked_stage_word()}"  # another stage, another chart: no mark stays chosen in it
    st.plotly_chart(
        figure,
        theme=None,
        key=key,
        config=CONFIG,
        alt=f"{figure.layout.title.text}. {description}",
        on_select=partial(jump.from_chart, key, places),
        selection_mode="points",
    )


def _show_missing(missing: dict[str, str]) -> None:
    """Say why charts are not there."""
    for reason, name in missing.items():
        with st.container(key=f"missing-{name}"):
            st.markdown(f":gray-badge[not measured] {prose(reason)}")
