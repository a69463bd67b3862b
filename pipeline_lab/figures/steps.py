"""Step time over the run, and what the training achieved."""

import numpy as np
import plotly.graph_objects as go

from pipeline_lab.analysis.job_steps import JobSteps
from pipeline_lab.figures.aggregate import FloatArray, column, group_mean, group_percentile, group_size, group_starts
from pipeline_lab.figures.theme import Mode, add_band, add_key, add_note, colour, new_figure, shade
from pipeline_lab.units import NS_PER_MS

MAX_POINTS = 800
MAX_MARKS = 200


def step_time(job: JobSteps, mode: Mode = "light") -> go.Figure:
    """Draw the time of every step; the warm-up is shaded, profiled steps are marked."""
    figure = new_figure("Step time over the run", mode, "Step", "Step time (ms)")
    step, time_ms = column(job.table, "step"), column(job.table, "step_ns", NS_PER_MS)
    starts = group_starts(len(step), MAX_POINTS)
    if group_size(starts) > 1:
        add_note(figure, f"Line: median of {group_size(starts)} neighbouring steps; band: 5th to 95th percentile.")
        low, high = (group_percentile(time_ms, starts, percent) for percent in (5, 95))
        add_band(figure, step[starts], low, high, mode)
    figure.add_scatter(
        x=step[starts],
        y=group_percentile(time_ms, starts, 50),
        mode="lines",
        name="step time",
        line={"color": colour("busy", mode), "width": 1.6},
        hovertemplate="step %{x}: %{y:.3g} ms<extra></extra>",
    )
    _mark_profiled(figure, job, step, time_ms, mode)
    _mark_warmup(figure, job, step, time_ms, mode)
    return figure


def learning(job: JobSteps, mode: Mode = "light") -> go.Figure:
    """Draw loss, and below it accuracy where the workload has one."""
    step, loss, accuracy = (column(job.table, name) for name in ("step", "loss", "accuracy"))
    has_accuracy = not np.isnan(accuracy).all()
    figure = new_figure("Loss and accuracy" if has_accuracy else "Loss", mode, "Step", "Loss (no unit)")
    starts = group_starts(len(step), MAX_POINTS)
    if group_size(starts) > 1:
        add_note(figure, f"Each point is the mean of {group_size(starts)} neighbouring steps.")
    _add_line(figure, step[starts], group_mean(loss, starts), "loss", "busy", mode, axis="y")
    if has_accuracy:
        _add_line(figure, step[starts], 100 * group_mean(accuracy, starts), "accuracy", "dispatch", mode, axis="y2")
        figure.update_layout(
            height=440,
            yaxis={"domain": [0.56, 1]},
            yaxis2={"domain": [0, 0.44], "title": {"text": "Accuracy (%)"}, "anchor": "x", "range": [0, 100]},
            xaxis={"anchor": "y2"},
        )
    return figure


def _add_line(
    figure: go.Figure, x: FloatArray, y: FloatArray, name: str, category: str, mode: Mode, *, axis: str
) -> None:
    figure.add_scatter(
        x=x,
        y=y,
        yaxis=axis,
        mode="lines",
        line={"color": colour(category, mode), "width": 1.6},
        hovertemplate="step %{x}: " + name + " %{y:.3g}<extra></extra>",
        showlegend=False,
    )


def _mark_profiled(figure: go.Figure, job: JobSteps, step: FloatArray, time_ms: FloatArray, mode: Mode) -> None:
    rows = np.flatnonzero(job.table.column("profiled").to_numpy(zero_copy_only=False))
    rows = rows[group_starts(len(rows), MAX_MARKS)]
    if not len(rows):
        return
    figure.add_scatter(
        x=step[rows],
        y=time_ms[rows],
        mode="markers",
        name="profiled",
        marker={"color": colour("input_wait", mode), "size": 5},
        hovertemplate="profiled step %{x}: %{y:.3g} ms<extra></extra>",
    )


def _mark_warmup(figure: go.Figure, job: JobSteps, step: FloatArray, time_ms: FloatArray, mode: Mode) -> None:
    warm = job.table.column("warmup").to_numpy(zero_copy_only=False).astype(bool)
    if not warm.any():
        return
    shade(figure, mode, [(step[warm].min() - 0.5, step[warm].max() + 0.5)])
    add_key(figure, "warm-up", mode)
    measured = time_ms[~warm]
    if len(measured) and time_ms[warm].max() > 3 * measured.max():
        figure.update_yaxes(range=[0, 1.15 * measured.max()])
        add_note(figure, "The warm-up's longest steps reach beyond the chart.")
