"""Which files the examples came from, beside what an even sample would be."""

from pathlib import PurePath

import numpy as np
import plotly.graph_objects as go

from pipeline_lab.analysis.file_sampling import FileSampling
from pipeline_lab.figures.aggregate import FloatArray, IntArray, column, group_size, group_starts
from pipeline_lab.figures.theme import THEMES, Mode, add_note, colour, new_figure
from pipeline_lab.units import format_percent

MAX_FILES = 48
LABEL_LENGTH = 18


def file_shares(sampling: FileSampling, mode: Mode = "light") -> go.Figure:
    """Draw each file's share of the samples as a bar, and what its size would give it as a mark."""
    figure = new_figure("Where the samples came from", mode, "File (what tells the names apart)", "Share (%)")
    figure.update_layout(dragmode=False)
    figure.update_xaxes(type="category")
    observed, expected = (100 * column(sampling.table, name) for name in ("observed_share", "expected_share"))
    starts = group_starts(len(observed), MAX_FILES)
    labels = _labels(sampling.table.column("file").to_pylist(), starts)
    if group_size(starts) > 1:
        add_note(figure, f"Each bar joins {group_size(starts)} neighbouring files.")
    if sampling.basis == "reads":
        add_note(figure, "Counted by reads inside the windows; the job did not note its samples.")
    figure.add_bar(
        x=labels,
        y=_group_sum(observed, starts),
        name="observed",
        marker={"color": colour("busy", mode), "line": {"width": 0}},
        hovertemplate="%{x}: %{y:.3g} % observed<extra></extra>",
    )
    if not np.isnan(expected).all():
        figure.add_scatter(
            x=labels,
            y=_group_sum(expected, starts),
            name="expected by size",
            mode="markers",
            marker={
                "symbol": "line-ew",
                "size": 22 if len(starts) <= 16 else 10,
                "line": {"width": 3, "color": colour("input_wait", mode)},
            },
            hovertemplate="%{x}: %{y:.3g} % expected<extra></extra>",
        )
    _note_distance(figure, sampling)
    return figure


def sampling_over_time(sampling: FileSampling, mode: Mode = "light") -> go.Figure:
    """Draw as a heat map how many examples each file gave in the course of the run."""
    files = sampling.table.column("file").to_pylist()
    starts = group_starts(len(files), MAX_FILES)
    figure = new_figure(
        "Samples per file over the run", mode, "Step", "", height=150 + max(120, min(22 * len(starts), 420))
    )
    if group_size(starts) > 1:
        add_note(figure, f"Each row joins {group_size(starts)} neighbouring files.")
    counts, steps = _grid(sampling, files, starts)
    figure.add_heatmap(
        z=counts,
        x=steps,
        y=_labels(files, starts),
        colorscale=[[i / (len(THEMES[mode].scale) - 1), shade] for i, shade in enumerate(THEMES[mode].scale)],
        zmin=0,
        xgap=1,
        ygap=1,
        colorbar={
            "title": {"text": "samples", "side": "right", "font": {"size": 12}},
            "thickness": 10,
            "outlinewidth": 0,
        },
        hovertemplate="%{y} around step %{x:.0f}: %{z} samples<extra></extra>",
    )
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False, title_text="File")
    figure.update_xaxes(showgrid=False)
    return figure


def _grid(sampling: FileSampling, files: list[str], starts: IntArray) -> tuple[FloatArray, FloatArray]:
    timeline = sampling.timeline
    bins = column(timeline, "bin").astype(np.int64)
    steps = np.zeros(bins.max() + 1 if len(bins) else 0)
    steps[bins] = column(timeline, "step")
    row_of = {file: index // group_size(starts) for index, file in enumerate(files)}
    rows = np.array([row_of[file] for file in timeline.column("file").to_pylist()], np.int64)
    counts = np.zeros((len(starts), len(steps)))
    np.add.at(counts, (rows, bins), column(timeline, "samples"))
    return counts, steps


def _note_distance(figure: go.Figure, sampling: FileSampling) -> None:
    if sampling.total_variation is None:
        return
    sentence = f"{format_percent(100 * sampling.total_variation)} of the samples were more than their file's share"
    if sampling.total_variation_ideal is not None:
        sentence += f"; chance alone would give {format_percent(100 * sampling.total_variation_ideal)}"
    add_note(figure, sentence + ".")


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
