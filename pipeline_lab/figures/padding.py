"""How much of the batches is padding."""

import numpy as np
import plotly.graph_objects as go

from pipeline_lab.analysis.padding import Padding
from pipeline_lab.figures.aggregate import column, group_percentile, group_size, group_starts
from pipeline_lab.figures.theme import Mode, add_band, add_note, colour, new_figure
from pipeline_lab.units import format_percent

MAX_POINTS = 400


def padding_over_time(padding: Padding, mode: Mode = "light") -> go.Figure:
    """Draw the share of padding in every batch over the steps."""
    figure = new_figure("Padding of the batches", mode, "Step", "Padding (% of the batch)")
    step, elements = column(padding.table, "step"), column(padding.table, "elements")
    percent = 100 * column(padding.table, "padding") / np.maximum(elements, 1)
    starts = group_starts(len(step), MAX_POINTS)
    if group_size(starts) > 1:
        add_note(figure, f"Line: median of {group_size(starts)} neighbouring batches; band: 5th to 95th percentile.")
        low, high = (group_percentile(percent, starts, each) for each in (5, 95))
        add_band(figure, step[starts], low, high, mode)
    figure.add_scatter(
        x=step[starts],
        y=group_percentile(percent, starts, 50),
        mode="lines",
        name="padding",
        line={"color": colour("busy", mode), "width": 1.6},
        hovertemplate="step %{x}: %{y:.3g} % padding<extra></extra>",
    )
    add_note(figure, f"Of all that the steps were sent, {format_percent(padding.percent)} was padding.")
    figure.update_yaxes(range=[0, 100])
    return figure
