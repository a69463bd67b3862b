"""Charts that change while one looks at them: drawn again in place, zoom and all.

Streamlit's own chart is taken down and built anew whenever its data change, which one sees as a flicker.
"""

from pathlib import Path

import plotly.graph_objects as go
import streamlit as st

from pipeline_lab.report.content import Picture
from pipeline_lab.ui import state
from pipeline_lab.ui.charts import CONFIG
from pipeline_lab.ui.routes import DRAWING_LIBRARY
from pipeline_lab.ui.text import prose

_chart = st.components.v2.component(
    "pipeline_lab_live_chart",
    html='<div class="live-chart" role="figure"></div>',
    js=Path(__file__).with_name("live_chart.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def show(figure: go.Figure, name: str, description: str) -> None:
    """Show a figure; the next one of that name takes its place."""
    _chart(
        key=f"chart-{name}",
        data={
            "figure": figure.to_json(),
            "description": f"{figure.layout.title.text}. {description}",
            "height": figure.layout.height,
            "config": {**CONFIG, "responsive": True},
            "library": DRAWING_LIBRARY,
        },
    )


def show_picture(picture: Picture) -> None:
    """Show a report's picture, or why there is none."""
    drawing = picture.draw(state.mode())
    if isinstance(drawing, go.Figure):
        show(drawing, picture.name, picture.description)
    else:
        st.markdown(f":gray-badge[not measured] {prose(drawing.reason)}")
