"""Several small charts on one time axis: one panel per stage or allocator."""

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from pipeline_lab.data_classes import dataclass
from pipeline_lab.figures.aggregate import FloatArray, break_between, group_percentile, group_size, group_starts
from pipeline_lab.figures.theme import THEMES, Mode, add_note, color, new_figure

MAX_PANELS = 6
PANEL_POINTS = 200
PANEL_HEIGHT, LABEL_HEIGHT, FRAME_HEIGHT = 96, 18, 110


@dataclass(frozen=True, eq=False)
class Panel:
    """One line; arrays have shape (n,).

    Attributes:
        label: What it shows, with its unit.
        values: NaN where nothing is known.
        limit: NaN where there is none.
        windows: The profile window of each value, between which nothing was recorded; None where it was all the time.
    """

    label: str
    time_s: FloatArray
    values: FloatArray
    limit: FloatArray
    windows: FloatArray | None = None


def draw_panels(title: str, panels: Sequence[Panel], mode: Mode) -> go.Figure:
    """Draw the panels below each other on one time axis; at most :data:`MAX_PANELS`, and say so."""
    shown = panels[:MAX_PANELS]
    figure = new_figure(title, mode, "", "", height=FRAME_HEIGHT + PANEL_HEIGHT * len(shown))
    joined = max(_add_panel(figure, number, panel, len(shown), mode) for number, panel in enumerate(shown))
    figure.update_xaxes(matches="x", showticklabels=False, title_text="")
    figure.update_layout(xaxis_matches=None)  # plotly.js complains of an axis that matches itself
    figure.update_yaxes(nticks=4, title_text="")
    bottom = "xaxis" if len(shown) == 1 else f"xaxis{len(shown)}"
    figure.update_layout({bottom: {"title": {"text": "Time (s)"}, "showticklabels": True}})
    if joined > 1:
        add_note(figure, f"Each point is the highest of up to {joined} samples.")
    if len(shown) < len(panels):
        add_note(figure, f"{len(shown)} of {len(panels)}.")
    return figure


def _add_panel(figure: go.Figure, number: int, panel: Panel, panels: int, mode: Mode) -> int:
    """Add a panel below the earlier ones and return how many neighbors each of its points joins."""
    suffix = "" if number == 0 else str(number + 1)
    row, label = 1 / panels, LABEL_HEIGHT / PANEL_HEIGHT / panels
    top = 1 - number * row
    known = np.isfinite(panel.values)
    starts = group_starts(int(known.sum()), PANEL_POINTS)
    name = html.escape(panel.label, quote=False)
    lines = [(name, panel.values, {"color": color("busy", mode), "width": 1.6, "shape": "hv"})]
    if np.isfinite(panel.limit).any():
        lines.append(
            (f"limit of {name}", panel.limit, {"color": color("expected", mode), "width": 1.4, "dash": "dash"})
        )
    for text, values, style in lines:
        time_s, heights = panel.time_s[known][starts], group_percentile(values[known], starts, 100)
        if panel.windows is not None:
            time_s, heights = break_between(time_s, heights, panel.windows[known][starts])
        figure.add_scatter(
            x=time_s,
            y=heights,
            xaxis=f"x{suffix}",
            yaxis=f"y{suffix}",
            mode="lines" if panel.windows is None or text != name else "lines+markers",  # a window may hold one value
            marker={"size": 4},
            name=text,
            line=style,
            hovertemplate="%{fullData.name}, %{x:.3g} s: %{y:.4g}<extra></extra>",
            showlegend=False,
        )
    ceiling = float(np.nanmax(np.concatenate((panel.values[known], panel.limit[known]))))
    figure.update_layout(
        {
            f"xaxis{suffix}": {"anchor": f"y{suffix}"},
            f"yaxis{suffix}": {
                "anchor": f"x{suffix}",
                "domain": [max(0, top - row + label / 2), top - label],
                "range": [0, 1.2 * ceiling or 1],
            },
        }
    )
    figure.add_annotation(
        text=name,
        xref="paper",
        yref="paper",
        x=0,
        y=top - label,
        xanchor="left",
        yanchor="bottom",
        showarrow=False,
        font={"size": 12, "color": THEMES[mode].ink},
    )
    return group_size(starts)
