"""A chart on a page: drawn once, in place, by the library that reports embed.

Streamlit's own chart is drawn three times before it rests, by a library three times as large.
"""

import json
from collections.abc import Callable
from pathlib import Path

import plotly.graph_objects as go
import streamlit as st

from pipeline_lab.figures.theme import dark_colors
from pipeline_lab.ui.serving.routes import DRAWING_LIBRARY
from pipeline_lab.ui.shared import state

CONFIG = {"displaylogo": False, "modeBarButtons": [["toImage", "resetScale2d"]]}
"""Few buttons, because each is a tab stop. Dragging zooms, double-clicking resets."""
COMPONENT = "pipeline_lab_chart"


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


PAGE_THEME = _read("page_theme.js")
"""The code by which what draws itself follows the theme of its page."""
_chart = st.components.v2.component(
    COMPONENT,
    html='<div class="lab-chart" role="figure"></div>',
    js=f"{PAGE_THEME}\nconst DARK = {json.dumps(dark_colors())}\n{_read('chart.js')}",
    isolate_styles=False,
)


def show_chart(
    figure: go.Figure, name: str, description: str, on_click: Callable[[int, int], None] | None = None
) -> None:
    """Show a figure; see :func:`show_written`."""
    show_written(figure.to_json(), figure.layout.height, name, description, on_click)


def show_written(
    figure: str, height: float, name: str, description: str, on_click: Callable[[int, int], None] | None = None
) -> None:
    """Show a figure; the next one of that name takes its place.

    Args:
        figure: What to draw, as JSON, in the colors of light charts; on a dark page the browser takes those of dark ones.
        height: Of it, pixels.
        name: Tells the charts of a page apart.
        description: For those who cannot see it.
        on_click: Called with the number of the trace and of the mark that were clicked, before the page is built again.
    """
    key = f"chart-{name}"

    def tell() -> None:
        clicked = getattr(state.widget_value(key), "clicked", None)
        if clicked and on_click:
            on_click(*clicked)

    _chart(
        key=key,
        data={
            "figure": figure,
            "description": description,
            "height": height,
            "config": CONFIG,
            "library": DRAWING_LIBRARY,
        },
        on_clicked_change=tell,
    )
