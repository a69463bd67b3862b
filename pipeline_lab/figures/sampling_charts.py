"""Which files the examples came from, beside what an even sample would be; padding of the batches; what evaluations found."""

import html
from pathlib import PurePath
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa

from pipeline_lab.analysis.sampling.evaluation import Evaluation
from pipeline_lab.analysis.sampling.file_sampling import FileSampling
from pipeline_lab.analysis.sampling.padding import Padding
from pipeline_lab.analysis.sampling.sample_history import MAX_BINS, MAX_POINTS, LabelMix
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.aggregate import (
    FloatArray,
    IntArray,
    column,
    group_mean,
    group_size,
    group_starts,
)
from pipeline_lab.figures.theme import (
    FEW,
    THEMES,
    Mode,
    add_medians,
    add_note,
    caption_of,
    color,
    new_figure,
    say,
)
from pipeline_lab.statistics.sampling import share_spread
from pipeline_lab.units import format_count, format_duration, format_percent

MAX_FILES = 48
Z_90 = 1.645
"""Standard deviations of a normal distribution that hold 90 of 100 samples, both ways."""

EVEN_FILES = 0.9
"""Part of the files that an even sample leaves inside of its range."""

LABEL_LENGTH = 18


def file_shares(sampling: FileSampling, mode: Mode = "light") -> go.Figure:
    """Draw how far each file's share of the samples is from what its size would give it; where that is not known, the share."""
    figure = new_figure("Where the samples came from", mode, "File (what tells the names apart)", "Share (%)")
    figure.update_layout(dragmode=False)
    figure.update_xaxes(type="category")
    names = ("observed_share", "expected_share", "predicted_share")
    observed, expected, predicted = (100 * column(sampling.table, name) for name in names)
    starts = group_starts(len(observed), MAX_FILES)
    labels = _labels(sampling.table.column("file").to_pylist(), starts)
    found, due = _group_sum(observed, starts), _group_sum(expected, starts)
    is_known = not np.isnan(expected).all()
    spread = _even_range(sampling, starts) if is_known else np.zeros(len(starts))
    base = due if is_known else np.zeros(len(starts))
    say(figure, _furthest(labels, found, due, spread) if is_known else _largest_share(labels, found))
    if group_size(starts) > 1:
        add_note(figure, f"Each bar joins {group_size(starts)} neighboring files.")
    if sampling.basis == "reads":
        add_note(figure, "Counted by reads inside the windows; the job did not note its samples.")
    if is_known:
        figure.update_yaxes(title_text="Above or below its share (% of all samples)", rangemode="normal", zeroline=True)
        _add_even_range(figure, labels, spread, mode)
    figure.add_bar(
        x=labels,
        y=found - base,
        name="observed",
        marker={"color": color("busy", mode), "line": {"width": 0}},
        customdata=np.stack([found, due], axis=1),
        hovertemplate="%{x}: %{customdata[0]:.3g} % observed"
        + (", %{customdata[1]:.3g} % by its size" if is_known else "")
        + "<extra></extra>",
    )
    if not np.isnan(predicted).all():
        figure.add_scatter(
            x=labels,
            y=_group_sum(predicted, starts) - base,
            name="predicted",
            mode="markers",
            marker={"symbol": "circle-open", "size": 8, "line": {"width": 2}, "color": color("host_operation", mode)},
            customdata=_group_sum(predicted, starts),
            hovertemplate="%{x}: %{customdata:.3g} % predicted<extra></extra>",
        )
    _note_distance(figure, sampling)
    return figure


def _add_even_range(figure: go.Figure, labels: list[str], spread: FloatArray, mode: Mode) -> None:
    """Put a gray bar behind each file's, as far as 90 of 100 even samples of this size stray."""
    figure.add_bar(
        x=labels,
        y=2 * spread,
        base=-spread,
        name="even samples",
        marker={"color": THEMES[mode].shade, "line": {"width": 0}},
        customdata=spread,
        hovertemplate="%{x}: even samples stray by up to %{customdata:.2g} %<extra></extra>",
    )
    figure.update_layout(barmode="overlay")


def _furthest(labels: list[str], found: FloatArray, due: FloatArray, spread: FloatArray) -> str:
    """Say which file is furthest from its share, unless all are as close as chance lets them be."""
    beyond = np.abs(found - due) - spread
    if not len(beyond) or (beyond <= 0).sum() >= EVEN_FILES * len(beyond):
        return "Every file gives about what its size suggests: the bars stay inside the gray range of even samples."
    worst = int(np.argmax(beyond))
    is_over = found[worst] > due[worst]
    share, expected = format_percent(found[worst]), format_percent(due[worst])
    outside = int((beyond > 0).sum())
    return (
        f"{html.escape(labels[worst])} gives too {'much' if is_over else 'little'}: {share} of the samples instead of {expected}; "
        f"{outside} of {len(beyond)} are outside the even range."
    )


def _largest_share(labels: list[str], found: FloatArray) -> str:
    if not len(found):
        return "No file gave a sample."
    most = int(np.argmax(found))
    return f"{html.escape(labels[most])} gives most: {format_percent(found[most])} of the samples."


def sampling_over_time(sampling: FileSampling, mode: Mode = "light") -> go.Figure:
    """Draw as a heat map how many examples each file gave in the course of the run."""
    files = sampling.table.column("file").to_pylist()
    starts = group_starts(len(files), MAX_FILES)
    figure = new_figure(
        f"{sampling.basis.capitalize()} per file over the run",
        mode,
        "Step",
        "",
        height=150 + max(120, min(22 * len(starts), 420)),
    )
    if group_size(starts) > 1:
        add_note(figure, f"Each row joins {group_size(starts)} neighboring files.")
    if sampling.basis == "reads":
        add_note(figure, "Reads by the step that ran meanwhile; buffers let them read before the steps that use them.")
    counts, steps = _grid(sampling.timeline, files, starts)
    drawn = f"{(counts > 0).sum(axis=0).mean():.3g} of {len(starts)} {'files' if group_size(starts) == 1 else 'groups of files'}"
    say(figure, f"At a time the run draws from {drawn} on average.")
    _add_heat(figure, counts, steps, _labels(files, starts), "File", mode, sampling.basis)
    return figure


def labels_over_time(mix: LabelMix, mode: Mode = "light") -> go.Figure:
    """Draw as a heat map how many examples of each label came in the course of the run."""
    labels = sorted(set(mix.table.column("label").to_pylist()), key=int)
    starts = group_starts(len(labels), MAX_FILES)
    figure = new_figure(
        "Samples per label over the run", mode, "Step", "", height=150 + max(120, min(22 * len(starts), 420))
    )
    say(
        figure,
        f"A batch's labels are {format_percent(100 * mix.batch_total_variation)} off those of the run; even batches of "
        f"this size would be {format_percent(100 * mix.batch_total_variation_ideal)} off.",
    )
    if group_size(starts) > 1:
        add_note(figure, f"Each row joins {group_size(starts)} neighboring labels.")
    counts, steps = _grid(mix.table, labels, starts)
    names = labels if group_size(starts) == 1 else [labels[start] for start in starts]
    _add_heat(figure, counts, steps, names, "Label", mode)
    return figure


def _add_heat(
    figure: go.Figure,
    counts: FloatArray,
    steps: FloatArray,
    rows: list[str],
    row_title: str,
    mode: Mode,
    counted: str = "samples",
) -> None:
    scale = THEMES[mode].scale
    figure.add_heatmap(
        z=counts,
        x=steps,
        y=rows,
        colorscale=[[index / (len(scale) - 1), shade] for index, shade in enumerate(scale)],
        zmin=0,
        xgap=1,
        ygap=1,
        colorbar={
            "title": {"text": counted, "side": "right", "font": {"size": 12}},
            "thickness": 10,
            "outlinewidth": 0,
        },
        hovertemplate=f"%{{y}} around step %{{x:.0f}}: %{{z}} {counted}<extra></extra>",
    )
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False, title_text=row_title)
    figure.update_xaxes(showgrid=False)


def coverage_over_time(sampling: FileSampling, mode: Mode = "light") -> go.Figure:
    """Draw how much of the data was used by each step, beside shuffled epochs and what the options predict."""
    figure = new_figure("How much of the data was used", mode, "Step", "Records used at least once (%)")
    used = column(sampling.coverage, "records_percent")
    even = column(sampling.coverage, "even_percent")
    say(
        figure,
        f"The run used {format_percent(used[-1])} of the records; shuffled epochs would have used {format_percent(even[-1])}.",
    )
    highest = np.nanmax([column(sampling.coverage, name).max() for name in ("records_percent", "even_percent")])
    figure.update_yaxes(range=[0, 1.08 * highest])
    steps = column(sampling.coverage, "step")
    lines = (
        ("used", "records_percent", {"color": color("busy", mode), "width": 2.5}),
        ("shuffled epochs", "even_percent", {"color": color("expected", mode), "width": 1.5, "dash": "dot"}),
        ("predicted", "predicted_percent", {"color": color("host_operation", mode), "dash": "dash"}),
    )
    for name, values, line in lines:
        if not np.isnan(shown := column(sampling.coverage, values)).all():
            figure.add_scatter(
                x=steps,
                y=shown,
                name=name,
                mode="lines" if len(steps) >= FEW else "lines+markers",
                line=line,
                hovertemplate=f"step %{{x}}: %{{y:.3g}} % {name}<extra></extra>",
            )
    if sampling.reachable_percent is not None:
        highest = max(highest, sampling.reachable_percent)
        figure.update_yaxes(range=[0, 1.08 * highest])
        figure.add_scatter(
            x=steps[[0, -1]],
            y=[sampling.reachable_percent] * 2,
            name="within reach",
            mode="lines",
            line={"color": color("input_wait", mode), "width": 1.5, "dash": "dashdot"},
            hovertemplate="%{y:.3g} % within reach of a pipeline that starts over<extra></extra>",
        )
        add_note(figure, "The pipeline is rebuilt after every evaluation: what lies above the line it never reaches.")
    opened, files = int(column(sampling.coverage, "files").max()), sampling.table.num_rows
    add_note(figure, f"{opened} of {files} files gave an example.")
    if len(steps) >= MAX_POINTS:
        add_note(figure, f"Drawn at {len(steps)} of the run's steps.")
    return figure


def _grid(timeline: pa.Table, rows: list[str], starts: IntArray) -> tuple[FloatArray, FloatArray]:
    bins = column(timeline, "bin").astype(np.int64)
    steps = np.zeros(bins.max() + 1 if len(bins) else 0)
    steps[bins] = column(timeline, "step")
    row_of = {row: index // group_size(starts) for index, row in enumerate(rows)}
    places = np.array([row_of[row] for row in timeline.column(0).to_pylist()], np.int64)
    counts = np.zeros((len(starts), len(steps)))
    np.add.at(counts, (places, bins), column(timeline, "samples"))
    return counts, steps


def _even_range(sampling: FileSampling, starts: IntArray) -> FloatArray:
    """Return how far 90 of 100 even samples of this size stray from the expected share, percent, shape (groups,)."""
    counts = column(sampling.table, "samples" if sampling.basis == "samples" else "reads")
    records = _group_sum(column(sampling.table, "records"), starts).astype(np.int64)
    return 100 * Z_90 * share_spread(records, max(1, int(np.nansum(counts))))


def _note_distance(figure: go.Figure, sampling: FileSampling) -> None:
    if sampling.total_variation is None:
        return
    sentence = f"Sampling skew (total variation distance): {format_percent(100 * sampling.total_variation)}"
    if sampling.total_variation_ideal is not None:
        sentence += f"; an even sample of this size has {format_percent(100 * sampling.total_variation_ideal)}"
    add_note(figure, sentence + ".")
    if sampling.epochs_seen is not None and sampling.epochs_seen < 1:
        add_note(figure, f"The run saw {format_percent(100 * sampling.epochs_seen)} of an epoch.")


def _group_sum(shares: FloatArray, starts: IntArray) -> FloatArray:
    return np.add.reduceat(np.nan_to_num(shares), starts) if len(starts) else np.zeros(0)


def _labels(files: list[str], starts: IntArray) -> list[str]:
    names = _distinct([PurePath(file).name for file in files])
    size = group_size(starts)
    if size == 1:
        return names
    return [f"{start}–{min(start + size, len(names)) - 1}" for start in starts]


def _distinct(names: list[str]) -> list[str]:
    """Keep what tells names apart: shards differ in a few digits between a common start and end."""
    if len(names) < 2:
        return [_clip(name) for name in names]
    start = _common_start(names).rstrip("0123456789")
    end = _common_start([name[::-1] for name in names])[::-1].lstrip("0123456789")
    short = [_clip(name[len(start) : len(name) - len(end)]) for name in names]
    if all(short) and len(set(short)) == len(short):
        return short
    return [f"{index}: {_clip(name)}" for index, name in enumerate(names)]


def _common_start(names: list[str]) -> str:
    columns = zip(*names, strict=False)
    length = next((index for index, letters in enumerate(columns) if len(set(letters)) > 1), min(map(len, names)))
    return names[0][:length]


def _clip(name: str) -> str:
    return name if len(name) <= LABEL_LENGTH else "…" + name[1 - LABEL_LENGTH :]


LINE_POINTS = 400


def padding_over_time(padding: Padding, mode: Mode = "light") -> go.Figure:
    """Draw the share of padding in every batch over the steps."""
    figure = new_figure("Padding of the batches", mode, "Step", "Padding (% of the batch)")
    step, elements = column(padding.table, "step"), column(padding.table, "elements")
    percent = 100 * column(padding.table, "padding") / np.maximum(elements, 1)
    starts = group_starts(len(step), LINE_POINTS)
    shown: dict[str, Any] = {"name": "padding", "hovertemplate": "step %{x}: %{y:.3g} % padding<extra></extra>"}
    add_medians(figure, step[starts], percent, starts, color("busy", mode), mode, "batches", **shown)
    say(figure, f"Of all that the steps were sent, {format_percent(padding.percent)} was padding.")
    figure.update_yaxes(range=[0, 100])
    return figure


MAX_PASSES = 400


def evaluation_results(evaluation: Evaluation, job: JobSteps | Unavailable, mode: Mode = "light") -> go.Figure:
    """Draw loss, and below it accuracy, of every evaluation over the training steps, beside those of training."""
    has_accuracy = evaluation.last_accuracy is not None
    title = "Loss and accuracy of the evaluations" if has_accuracy else "Loss of the evaluations"
    figure = new_figure(title, mode, "Step", "Loss")
    panels = [("loss", "y", 1.0), *([("accuracy", "y2", 100.0)] if has_accuracy else [])]
    starts = group_starts(evaluation.count, MAX_PASSES)
    last = column(evaluation.passes, "loss")[-1]
    known = "" if evaluation.last_accuracy is None else f", its accuracy {100 * evaluation.last_accuracy:.3g} %"
    say(figure, f"The loss of the last evaluation is {last:.3g}{known}.")
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
            line={"color": color("input_wait", mode), "width": 1.6},
            hovertemplate="after %{x} steps: " + name + " %{y:.3g}<extra>evaluation</extra>",
        )
    if has_accuracy:
        figure.update_layout(
            height=440,
            yaxis={"domain": [0.56, 1]},
            yaxis2={"domain": [0, 0.44], "title": {"text": "Accuracy (%)"}, "anchor": "x", "range": [0, 100]},
            xaxis={"anchor": "y2"},
        )
    ways = {
        True: "; the training pipeline was rebuilt after each",
        False: "; the training pipeline was kept going",
        None: "",
    }
    add_note(
        figure,
        f"{format_count(evaluation.count)} evaluations took {format_duration(evaluation.total_ns)}, which belongs to no "
        f"step{ways[evaluation.is_rebuilt]}.",
    )
    return figure


def evaluated_files(sampling: FileSampling, passes: int, mode: Mode = "light") -> go.Figure:
    """Draw as a heat map how many examples of each file each evaluation looked at."""
    figure = sampling_over_time(sampling, mode)
    if passes > MAX_BINS:
        add_note(figure, f"Each column joins {passes / MAX_BINS:.3g} neighboring evaluations.")
    figure.update_layout(title={"text": "Examples per file in the evaluations"})
    say(figure, caption_of(figure).replace("At a time the run draws from", "An evaluation looks at"))
    figure.update_xaxes(title_text="Evaluation (in the order of time)")
    figure.update_traces(hovertemplate="%{y} in evaluation %{x:.0f}: %{z} examples<extra></extra>")
    return figure


def _add_training(figure: go.Figure, job: JobSteps, name: str, axis: str, factor: float, mode: Mode) -> None:
    values = column(job.table, name)
    if np.isnan(values).all():
        return
    starts = group_starts(len(values), LINE_POINTS)
    figure.add_scatter(
        x=column(job.table, "step")[starts],
        y=factor * group_mean(values, starts),
        yaxis=axis,
        mode="lines",
        name="training",
        showlegend=axis == "y",
        line={"color": color("busy", mode), "width": 1},
        opacity=0.6,
        hovertemplate="step %{x}: " + name + " %{y:.3g}<extra>training</extra>",
    )
