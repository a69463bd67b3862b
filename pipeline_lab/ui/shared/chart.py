"""A chart on a page: drawn once, in place, by the library that reports embed.

Streamlit's own chart is drawn three times before it rests, by a library three times as large.
"""

import json
from collections.abc import Callable
from pathlib import Path

import plotly.graph_objects as go
import streamlit as st

from pipeline_lab.data_classes import dataclass
from pipeline_lab.figures.theme import dark_colors
from pipeline_lab.ui.serving.routes import DRAWING_LIBRARY
from pipeline_lab.ui.shared import state

CONFIG = {"displaylogo": False, "modeBarButtons": [["toImage", "resetScale2d"]]}
"""Few buttons, because each is a tab stop. Dragging zooms, double-clicking resets."""
COMPONENT = "pipeline_lab_chart"


def _read(name: str) -> str:
    return (Path(__file__).parents[1] / "assets" / name).read_text(encoding="utf-8")


PAGE_THEME = _read("page_theme.js")
"""The code by which what draws itself follows the theme of its page."""
_chart = st.components.v2.component(
    COMPONENT,
    html='<div class="lab-chart" role="figure"></div>',
    js=f"{PAGE_THEME}\nconst DARK = {json.dumps(dark_colors())}\n{_read('chart.js')}",
    isolate_styles=False,
)


@dataclass(frozen=True)
class DrawnChart:
    """A figure as the browser takes it; building one takes some tens of ms, showing it again none.

    Attributes:
        name: Tells the charts of a page apart.
        figure: The figure as JSON.
        description: For those who cannot see it.
        height: Of the figure, in pixels.
    """

    name: str
    figure: str
    description: str
    height: float


def draw_chart(figure: go.Figure, name: str, description: str) -> DrawnChart:
    """Make a figure ready for any number of pages; the arguments are those of :func:`show_chart`."""
    return DrawnChart(name, figure.to_json(), description, figure.layout.height)


def show_chart(
    figure: go.Figure, name: str, description: str, on_click: Callable[[int, int], None] | None = None
) -> None:
    """Show a figure; the next one of that name takes its place.

    Args:
        figure: What to draw, in the colors of light charts; on a dark page the browser takes those of dark ones.
        name: Tells the charts of a page apart.
        description: For those who cannot see it.
        on_click: Called with the number of the trace and of the mark that were clicked, before the page is built again.
    """
    show_drawn(draw_chart(figure, name, description), on_click)


def show_drawn(chart: DrawnChart, on_click: Callable[[int, int], None] | None = None) -> None:
    """Show a chart as :func:`show_chart` does."""
    key = f"chart-{chart.name}"

    def tell() -> None:
        clicked = getattr(state.widget_value(key), "clicked", None)
        if clicked and on_click:
            on_click(*clicked)

    _chart(
        key=key,
        data={
            "figure": chart.figure,
            "description": chart.description,
            "height": chart.height,
            "config": CONFIG,
            "library": DRAWING_LIBRARY,
        },
        on_clicked_change=tell,
    )
