"""What the evaluations between the training steps found, and which files they read."""

import numpy as np
import plotly.graph_objects as go

from pipeline_lab.analysis.evaluation import Evaluation
from pipeline_lab.analysis.file_sampling import FileSampling
from pipeline_lab.analysis.job_steps import JobSteps
from pipeline_lab.analysis.sample_history import MAX_BINS
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.aggregate import column, group_mean, group_starts
from pipeline_lab.figures.sampling import sampling_over_time
from pipeline_lab.figures.theme import Mode, add_note, colour, new_figure
from pipeline_lab.units import format_count, format_duration

MAX_POINTS = 400
MAX_PASSES = 400


def evaluation_results(evaluation: Evaluation, job: JobSteps | Unavailable, mode: Mode = "light") -> go.Figure:
    """Draw loss, and below it accuracy, of every evaluation over the training steps, beside those of training."""
    has_accuracy = evaluation.last_accuracy is not None
    title = "Loss and accuracy of the evaluations" if has_accuracy else "Loss of the evaluations"
    figure = new_figure(title, mode, "Step", "Loss (no unit)")
    panels = [("loss", "y", 1.0), *([("accuracy", "y2", 100.0)] if has_accuracy else [])]
    starts = group_starts(evaluation.count, MAX_PASSES)
    for name, axis, factor in panels:
        if not isinstance(job, Unavailable):
            _add_training(figure, job, name, axis, factor, mode)
        figure.add_scatter(
            x=column(evaluation.passes, "step")[starts],
            y=factor * group_mean(column(evaluation.passes, name), starts),
            yaxis=axis,
            mode="lines+markers",
            name="evaluation",
            showlegend=axis == "y",
            line={"color": colour("input_wait", mode), "width": 1.6},
            hovertemplate="after %{x} steps: " + name + " %{y:.3g}<extra>evaluation</extra>",
        )
    if has_accuracy:
        figure.update_layout(
            height=440,
            yaxis={"domain": [0.56, 1]},
            yaxis2={"domain": [0, 0.44], "title": {"text": "Accuracy (%)"}, "anchor": "x", "range": [0, 100]},
            xaxis={"anchor": "y2"},
        )
    add_note(
        figure,
        f"{format_count(evaluation.count)} evaluations took {format_duration(evaluation.total_ns)}, which belongs to no "
        f"step; the training pipeline was {'built anew after each' if evaluation.is_rebuilt else 'kept going'}.",
    )
    return figure


def evaluated_files(sampling: FileSampling, passes: int, mode: Mode = "light") -> go.Figure:
    """Draw as a heat map how many examples of each file every one of so many evaluations looked at."""
    figure = sampling_over_time(sampling, mode)
    if passes > MAX_BINS:
        add_note(figure, f"Each column joins {passes / MAX_BINS:.3g} neighbouring evaluations.")
    figure.update_layout(title={"text": "Examples per file in the evaluations"})
    figure.update_xaxes(title_text="Evaluation (in the order of time)")
    figure.update_traces(hovertemplate="%{y} in evaluation %{x:.0f}: %{z} examples<extra></extra>")
    return figure


def _add_training(figure: go.Figure, job: JobSteps, name: str, axis: str, factor: float, mode: Mode) -> None:
    values = column(job.table, name)
    if np.isnan(values).all():
        return
    starts = group_starts(len(values), MAX_POINTS)
    figure.add_scatter(
        x=column(job.table, "step")[starts],
        y=factor * group_mean(values, starts),
        yaxis=axis,
        mode="lines",
        name="training",
        showlegend=axis == "y",
        line={"color": colour("busy", mode), "width": 1},
        opacity=0.6,
        hovertemplate="step %{x}: " + name + " %{y:.3g}<extra>training</extra>",
    )
