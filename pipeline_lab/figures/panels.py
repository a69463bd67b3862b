"""Several small charts on shared axes: one panel per stage or allocator, or one per run of a comparison."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import pyarrow.compute as pc

from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.comparison.recorded_runs import Comparison, RecordedRun
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.aggregate import FloatArray, column, group_percentile, group_size, group_starts
from pipeline_lab.figures.theme import THEMES, Mode, add_note, color, new_figure
from pipeline_lab.units import NS_PER_MS

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
    """

    label: str
    time_s: FloatArray
    values: FloatArray
    limit: FloatArray


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
    """Add a panel below the earlier ones and return how many neighbours each of its points joins."""
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
        figure.add_scatter(
            x=panel.time_s[known][starts],
            y=group_percentile(values[known], starts, 100),
            xaxis=f"x{suffix}",
            yaxis=f"y{suffix}",
            mode="lines",
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


LABEL_LENGTH = 20
RUN_POINTS = 300
FEW_PANELS = 4
RUN_PANEL_HEIGHT, SMALL_PANEL_HEIGHT, RUN_LABEL_HEIGHT, RUN_FRAME_HEIGHT = 116, 84, 18, 100
"""Pixels: of a panel with its label, where they are few or many; of the label; of title and bottom axis."""


def step_time_panels(comparison: Comparison, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw every run's step time over its steps, one panel each, on shared axes."""
    return _panels(comparison, "step_ns", NS_PER_MS, "Step time over the runs (ms)", mode)


def loss_panels(comparison: Comparison, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw every run's loss over its steps, one panel each, on shared axes."""
    return _panels(comparison, "loss", 1.0, "Loss over the runs", mode)


def run_labels(runs: Sequence[RecordedRun]) -> list[str]:
    """Return a short, distinct label for each run that no chart takes for markup."""
    return short_labels([run.name for run in runs])


def short_labels(names: Sequence[str]) -> list[str]:
    """Return names cut to a chart's width, distinct, and escaped."""
    short = [name if len(name) <= LABEL_LENGTH else f"{name[: LABEL_LENGTH - 1]}…" for name in names]
    if len(set(short)) < len(short):
        short = [f"{number}: {name}" for number, name in enumerate(short)]
    return [html.escape(" ".join(name.split()), quote=False) or "–" for name in short]


def _panels(comparison: Comparison, name: str, unit: float, title: str, mode: Mode) -> go.Figure | Unavailable:
    panels = [
        _panel(label, run.diagnosis.job_steps, name, unit)
        for label, run in zip(run_labels(comparison.runs), comparison.runs, strict=True)
        if not isinstance(run.diagnosis.job_steps, Unavailable)
    ]
    if not panels:
        return Unavailable("No run noted its steps; launch runs with the lab to see them over time.")
    row = RUN_PANEL_HEIGHT if len(panels) <= FEW_PANELS else SMALL_PANEL_HEIGHT
    figure = new_figure(title, mode, "", "", height=RUN_FRAME_HEIGHT + row * len(panels))
    for number, panel in enumerate(panels):
        _add_run(figure, number, panel, (1 / len(panels), RUN_LABEL_HEIGHT / row / len(panels)), mode)
    heights = [panel.values[np.isfinite(panel.values)] for panel in panels]
    ceiling = max((float(np.percentile(values, 99)) for values in heights if len(values)), default=0.0)
    figure.update_xaxes(matches="x", showticklabels=False)
    figure.update_yaxes(matches="y", range=[0, 1.15 * ceiling or 1], nticks=4)
    figure.update_layout(xaxis_matches=None, yaxis_matches=None)  # plotly.js complains of an axis that matches itself
    bottom = "xaxis" if len(panels) == 1 else f"xaxis{len(panels)}"
    figure.update_layout({bottom: {"title": {"text": "Step"}, "showticklabels": True}})
    joined = max(panel.joined for panel in panels)
    if joined > 1:
        add_note(figure, f"Lines: median of up to {joined} neighbouring steps.")
    return figure


@dataclass(frozen=True)
class _Panel:
    """One run's line: the median of ``joined`` neighbours at each point."""

    label: str
    steps: FloatArray
    values: FloatArray
    joined: int


def _panel(label: str, job: JobSteps, name: str, unit: float) -> _Panel:
    table = job.table.filter(pc.invert(job.table.column("warmup")))
    starts = group_starts(table.num_rows, RUN_POINTS)
    values = group_percentile(column(table, name, unit), starts, 50)
    return _Panel(label, column(table, "step")[starts], values, group_size(starts))


def _add_run(figure: go.Figure, number: int, panel: _Panel, shares: tuple[float, float], mode: Mode) -> None:
    """Add a panel below the earlier ones; ``shares`` of the plot's height: the whole row, and its label."""
    row, label = shares
    suffix = "" if number == 0 else str(number + 1)
    top = 1 - number * row
    figure.add_scatter(
        x=panel.steps,
        y=panel.values,
        xaxis=f"x{suffix}",
        yaxis=f"y{suffix}",
        mode="lines",
        name=panel.label,
        line={"color": color("busy" if number else "expected", mode), "width": 1.4},
        hovertemplate="%{fullData.name}, step %{x}: %{y:.3g}<extra></extra>",
        showlegend=False,
    )
    figure.update_layout(
        {
            f"xaxis{suffix}": {"anchor": f"y{suffix}"},
            f"yaxis{suffix}": {"anchor": f"x{suffix}", "domain": [max(0, top - row + label / 4), top - label]},
        }
    )
    figure.add_annotation(
        text=panel.label + (" (baseline)" if number == 0 and panel.label != "baseline" else ""),
        xref="paper",
        yref="paper",
        x=0,
        y=top - label,
        xanchor="left",
        yanchor="bottom",
        showarrow=False,
        font={"size": 12, "color": THEMES[mode].ink},
    )
