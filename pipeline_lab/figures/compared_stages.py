"""The stages of pipelines side by side: bars for a pair of runs, a heat map for more."""

from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go

from pipeline_lab.comparison.recorded import Comparison
from pipeline_lab.comparison.stages import ComparedStages, StageRow
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.aggregate import FloatArray
from pipeline_lab.figures.comparison import mark_zero, rows_figure
from pipeline_lab.figures.run_panels import run_labels, short_labels
from pipeline_lab.figures.theme import THEMES, Mode, add_note, colour
from pipeline_lab.units import NS_PER_MS

MAX_ROWS = 16
READABLE_CELLS = 5
"""Columns of a heat map whose cells have room for a number."""

CELL_HEIGHT, KEY_HEIGHT = 26, 44

_Read = Callable[[StageRow, int], float | None]


def stages_by_run(comparison: Comparison, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw the thread time that each stage takes for one batch, in every run."""
    stages = comparison.stages
    if isinstance(stages, Unavailable):
        return stages
    labels, title = run_labels(comparison.runs), "Thread time of the stages"
    if len(labels) > 2:
        scale = [[place / 4, shade] for place, shade in enumerate(THEMES[mode].scale)]
        figure = _heat_map(title, stages, _work_if_there(stages), labels, {"colorscale": scale, "zmin": 0}, mode)
        return _with_notes(figure, stages)
    rows = _costliest(stages)
    figure = _bars_figure(title, "Thread time for one batch (ms)", rows, mode)
    for run, (label, category) in enumerate(zip(labels, ("expected", "busy"), strict=True)):
        _add_bars(figure, rows, _values(rows, stages.work_ns, [run])[:, 0], colour(category, mode), label)
    figure.update_layout(barmode="group", bargap=0.25)
    return _with_notes(figure, stages)


def stage_difference(comparison: Comparison, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw how much more or less thread time each stage takes for one batch than in the baseline."""
    stages = comparison.stages
    if isinstance(stages, Unavailable):
        return stages
    candidates = range(1, len(comparison.runs))
    if all(stages.difference_ns(row, run) is None for row in stages.rows for run in candidates):
        return Unavailable("Baseline and candidate need stages; record profile windows in both.")
    title, less, more = "Stages, difference", colour("busy", mode), colour("input_wait", mode)
    if len(candidates) > 1:
        scale = {"colorscale": [[0, less], [0.5, THEMES[mode].paper], [1, more]], "zmid": 0}
        labels = run_labels(comparison.runs)[1:]
        figure = _heat_map(title, stages, stages.difference_ns, labels, scale, mode, first=1)
        return _with_notes(figure, stages)
    rows = _costliest(stages)
    figure = _bars_figure(title, "Difference (ms per batch; left is less)", rows, mode)
    values = _values(rows, stages.difference_ns, [1])[:, 0]
    _add_bars(figure, rows, values, [more if value > 0 else less for value in values])
    figure.update_xaxes(rangemode="normal")
    mark_zero(figure, mode)
    return _with_notes(figure, stages)


def _work_if_there(stages: ComparedStages) -> _Read:
    """Leave the cell of a stage that a pipeline does not have empty."""
    return lambda row, run: stages.work_ns(row, run) if row.uses[run] else None


def _costliest(stages: ComparedStages) -> list[StageRow]:
    """Return the rows that fit on a chart, in their order."""
    runs = range(len(stages.sources))
    by_cost = sorted(stages.rows, key=lambda row: -max(stages.work_ns(row, run) or 0.0 for run in runs))
    kept = by_cost[:MAX_ROWS]
    return [row for row in stages.rows if row in kept]


def _values(rows: list[StageRow], read: _Read, runs: list[int]) -> FloatArray:
    """Return ms, shape (rows, runs); NaN where it was not measured."""
    found = [[read(row, run) for run in runs] for row in rows]
    return np.array([[np.nan if ns is None else ns / NS_PER_MS for ns in each] for each in found], np.float64)


def _bars_figure(title: str, x_title: str, rows: list[StageRow], mode: Mode) -> go.Figure:
    figure = rows_figure(title, mode, x_title, len(rows))
    figure.update_yaxes(categoryorder="array", categoryarray=_names(rows))
    return figure


def _add_bars(
    figure: go.Figure, rows: list[StageRow], values: FloatArray, colours: str | list[str], name: str = ""
) -> None:
    figure.add_bar(
        x=values,
        y=_names(rows),
        orientation="h",
        name=name,
        marker={"color": colours, "line": {"width": 0}},
        hovertemplate=f"%{{y}}: %{{x:.3g}} ms<extra>{name}</extra>",
        showlegend=bool(name),
    )


def _heat_map(
    title: str,
    stages: ComparedStages,
    read: _Read,
    labels: list[str],
    colours: dict[str, object],
    mode: Mode,
    first: int = 0,
) -> go.Figure:
    """Draw a row per stage and a column per run, from the run of number ``first`` on."""
    rows = _costliest(stages)
    figure = rows_figure(f"{title} (ms per batch)", mode, "", len(rows))
    figure.add_heatmap(
        x=labels,
        y=_names(rows),
        z=_values(rows, read, list(range(first, first + len(labels)))),
        texttemplate="%{z:.3g}" if len(labels) <= READABLE_CELLS else None,
        hovertemplate="%{x}, %{y}: %{z:.3g} ms<extra></extra>",
        hoverongaps=False,
        xgap=1,
        ygap=1,
        colorbar={
            "orientation": "h",
            "thickness": 10,
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
        },
        **colours,
    )
    figure.update_xaxes(type="category", tickangle=-90 if len(labels) > READABLE_CELLS else None)
    longest = max(map(len, labels)) * 7 if len(labels) > READABLE_CELLS else 20
    figure.update_layout(height=110 + KEY_HEIGHT + longest + CELL_HEIGHT * len(rows), margin_b=KEY_HEIGHT)
    return figure


def _names(rows: list[StageRow]) -> list[str]:
    return short_labels([row.name for row in rows])


def _with_notes(figure: go.Figure, stages: ComparedStages) -> go.Figure:
    if len(stages.rows) > MAX_ROWS:
        add_note(figure, f"The {MAX_ROWS} costliest of {len(stages.rows)} stages.")
    for note in stages.notes:
        add_note(figure, note)
    return figure
