"""The stages of several pipelines side by side: for a pair one pipeline with both runs' times, for more a table in colors."""

import html
from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go

from pipeline_lab.comparison.compared_stages import ComparedStages, StageRow
from pipeline_lab.comparison.recorded_runs import Comparison
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.aggregate import FloatArray
from pipeline_lab.figures.comparing.comparison_charts import mark_zero, rows_figure
from pipeline_lab.figures.comparing.overlaid_runs import run_labels, short_labels
from pipeline_lab.figures.pipeline_flow import BOX_HEIGHT, add_training_step
from pipeline_lab.figures.theme import THEMES, Mode, add_note, color, end_axis, faint, new_figure, say
from pipeline_lab.units import NS_PER_MS, duration_unit, format_duration, format_duration_in, write_number

MAX_ROWS = 16
READABLE_CELLS = 5
"""Columns of a heat map whose cells have room for a number."""

CELL_HEIGHT, KEY_HEIGHT = 26, 44

_Read = Callable[[StageRow, int], float | None]


BOX_ROW, FRAME_HEIGHT = 52, 130
BOXES, TIMES = (0.0, 0.52), (0.56, 1.0)
"""Parts of the width: boxes, and thread times."""


def stages_by_run(comparison: Comparison, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw the stages in the order of the code, with the thread time that one batch takes of each in every run."""
    stages = comparison.stages
    if isinstance(stages, Unavailable):
        return stages
    labels = run_labels(comparison.runs)
    if len(labels) == 2:
        return _with_notes(_pair(stages, labels, mode), stages, labels)
    scale = [[place / 4, shade] for place, shade in enumerate(THEMES[mode].scale)]
    colors = {"colorscale": scale, "zmin": 0}
    figure = _heat_map("Thread time of the stages", stages, _work_if_there(stages), labels, colors, mode)
    return _with_notes(figure, stages, labels)


def _pair(stages: ComparedStages, labels: list[str], mode: Mode) -> go.Figure:
    """Draw one pipeline of boxes for both runs, from the source down to the training step, and both times beside each box."""
    rows = _costliest(stages)
    step = len(rows)
    figure = new_figure("The two pipelines, stage by stage", mode, "", "", height=FRAME_HEIGHT + BOX_ROW * (step + 1))
    hidden = {"showgrid": False, "zeroline": False, "showticklabels": False, "fixedrange": True}
    figure.update_layout(
        xaxis={"domain": BOXES, "range": [0, 1], **hidden},
        xaxis2={"domain": TIMES, "anchor": "y", "fixedrange": True},
        yaxis={"range": [step + 0.45, -0.45], **hidden},
        barmode="overlay",
        dragmode=False,
    )
    for name, (places, shade) in _kinds(stages, rows, labels, mode).items():
        _add_boxes(figure, name, rows, places, shade, mode)
    add_training_step(figure, step, mode)
    longest_ns = max((stages.work_ns(row, run) or 0.0 for row in rows for run in (0, 1)), default=0.0)
    unit = duration_unit(longest_ns)
    for run, (label, category, offset) in enumerate(
        zip(labels, ("expected", "busy"), (-BOX_HEIGHT / 4, BOX_HEIGHT / 4), strict=True)
    ):
        times = [stages.work_ns(row, run) if row.uses[run] else None for row in rows]
        figure.add_bar(
            x=[None if ns is None else ns / unit[0] for ns in times],
            y=[place + offset for place in range(step)],
            width=BOX_HEIGHT / 2.2,
            xaxis="x2",
            orientation="h",
            name=label,
            marker={"color": color(category, mode), "line": {"width": 0}},
            text=["" if ns is None else format_duration_in(ns, unit) for ns in times],
            textposition="outside",
            cliponaxis=False,
            hovertext=[row.name for row in rows],
            hovertemplate="%{hovertext}: %{text}<extra>%{fullData.name}</extra>",
        )
    end_axis(figure, longest_ns / unit[0], room=1.7, axis="xaxis2", ticks=2)
    figure.update_layout({"xaxis2": {"title": {"text": f"Thread time per batch ({unit[1]})"}}})
    return figure


def _kinds(
    stages: ComparedStages, rows: list[StageRow], labels: list[str], mode: Mode
) -> dict[str, tuple[list[int], str]]:
    """Return the places of the stages that both runs have, and that only one has, each with its color; none is left out."""
    both = [place for place, row in enumerate(rows) if all(row.uses)]
    kinds = {"in both": (both, color("busy", mode))}
    for run, other, category in ((0, 1, "expected"), (1, 0, "input_wait")):
        is_known = not isinstance(stages.sources[other], Unavailable)
        name = f"only in {labels[run]}" if is_known else f"in {labels[run]}; of {labels[other]} nothing is known"
        kinds[name] = (
            [place for place, row in enumerate(rows) if row.uses[other] is None],
            color(category if is_known else "busy", mode),
        )
    return {name: kind for name, kind in kinds.items() if kind[0]}


def _add_boxes(figure: go.Figure, name: str, rows: list[StageRow], places: list[int], shade: str, mode: Mode) -> None:
    """Draw the boxes of one kind with their names, and the arrow that leads from each to what its elements go to."""
    figure.add_bar(
        base=[0] * len(places),
        x=[1] * len(places),
        y=places,
        width=BOX_HEIGHT,
        orientation="h",
        name=name,
        marker={"color": faint(shade), "line": {"width": 1.5, "color": shade}},
        hovertext=[_details(rows[place]) for place in places],
        hovertemplate="%{hovertext}<extra>%{fullData.name}</extra>",
    )
    figure.add_scatter(  # text of bars would be centered line by line
        x=[0.01] * len(places),
        y=places,
        mode="text",
        text=[_label(rows[place]) for place in places],
        textposition="middle right",
        textfont={"color": THEMES[mode].ink, "size": 12},
        hoverinfo="skip",
        showlegend=False,
    )
    for place in places:
        figure.add_annotation(
            x=0.06,
            y=place + 1 - BOX_HEIGHT / 2,
            ax=0.06,
            ay=place + BOX_HEIGHT / 2,
            axref="x",
            ayref="y",
            showarrow=True,
            arrowhead=2,
            arrowwidth=1.2,
            arrowcolor=THEMES[mode].muted,
            text="",
        )


def _label(row: StageRow) -> str:
    """Return the name of a row, and below it how many calls run at once where one of the runs makes any."""
    (name,) = short_labels([row.name])
    calls = [None if use is None else use.parallelism for use in row.uses]
    known = [f"{each:.3g}" if each is not None else "1" for each, use in zip(calls, row.uses, strict=True) if use]
    known = list(dict.fromkeys(known))
    words = f"{' → '.join(known)} {'call' if known == ['1'] else 'calls'} at once"
    return f"<b>{name}</b>" + (f"<br>{words}" if any(each is not None for each in calls) else "")


def _details(row: StageRow) -> str:
    """Return what ran for a row in each run, and how full its buffer was."""
    lines = []
    for use in row.uses:
        buffer = ""
        if use is not None and use.buffered_elements is not None:
            limit = f" of {write_number(use.buffer_limit)}" if use.buffer_limit else ""
            buffer = f", {write_number(use.buffered_elements)}{limit} elements ready"
        lines.append(("–" if use is None else html.escape(" + ".join(use.ran))) + buffer)
    return f"<b>{html.escape(row.name)}</b><br>" + "<br>→ ".join(lines)


def stage_difference(comparison: Comparison, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw how much more or less thread time each stage takes for one batch than in the baseline."""
    stages = comparison.stages
    if isinstance(stages, Unavailable):
        return stages
    candidates = range(1, len(comparison.runs))
    if all(stages.difference_ns(row, run) is None for row in stages.rows for run in candidates):
        return Unavailable("Baseline and candidate need stages; record profile windows in both.")
    title, less, more = "Stages, difference", color("busy", mode), color("input_wait", mode)
    if len(candidates) > 1:
        scale = {"colorscale": [[0, less], [0.5, THEMES[mode].paper], [1, more]], "zmid": 0}
        labels = run_labels(comparison.runs)[1:]
        figure = _heat_map(title, stages, stages.difference_ns, labels, scale, mode, first=1)
        return _with_notes(figure, stages, run_labels(comparison.runs))
    rows = _costliest(stages)
    figure = _bars_figure(title, "Difference (ms per batch; left is less)", rows, mode)
    values = _thread_times(rows, stages.difference_ns, [1])[:, 0]
    _add_bars(figure, rows, values, [more if value > 0 else less for value in values])
    figure.update_xaxes(rangemode="normal")
    mark_zero(figure, mode)
    return _with_notes(figure, stages, run_labels(comparison.runs))


def _work_if_there(stages: ComparedStages) -> _Read:
    """Leave the cell of a stage that a pipeline does not have empty."""
    return lambda row, run: stages.work_ns(row, run) if row.uses[run] else None


def _costliest(stages: ComparedStages) -> list[StageRow]:
    """Return the rows that fit on a chart, in their order."""
    runs = range(len(stages.sources))
    by_cost = sorted(stages.rows, key=lambda row: -max(stages.work_ns(row, run) or 0.0 for run in runs))
    kept = by_cost[:MAX_ROWS]
    return [row for row in stages.rows if row in kept]


def _thread_times(rows: list[StageRow], read: _Read, runs: list[int]) -> FloatArray:
    """Return ms, shape (rows, runs); NaN where it was not measured."""
    found = [[read(row, run) for run in runs] for row in rows]
    return np.array([[np.nan if ns is None else ns / NS_PER_MS for ns in each] for each in found], np.float64)


def _bars_figure(title: str, x_title: str, rows: list[StageRow], mode: Mode) -> go.Figure:
    figure = rows_figure(title, mode, x_title, len(rows))
    figure.update_yaxes(categoryorder="array", categoryarray=_names(rows))
    return figure


def _add_bars(figure: go.Figure, rows: list[StageRow], values: FloatArray, colors: list[str]) -> None:
    figure.add_bar(
        x=values,
        y=_names(rows),
        orientation="h",
        marker={"color": colors, "line": {"width": 0}},
        hovertemplate="%{y}: %{x:.3g} ms<extra></extra>",
        showlegend=False,
    )


def _heat_map(
    title: str,
    stages: ComparedStages,
    read: _Read,
    labels: list[str],
    colors: dict[str, object],
    mode: Mode,
    first: int = 0,
) -> go.Figure:
    """Draw a row per stage and a column per run, from the run of number ``first`` on."""
    rows = _costliest(stages)
    figure = rows_figure(f"{title} (ms per batch)", mode, "", len(rows))
    figure.add_heatmap(
        x=labels,
        y=_names(rows),
        z=_thread_times(rows, read, list(range(first, first + len(labels)))),
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
        **colors,
    )
    figure.update_xaxes(type="category", tickangle=-90 if len(labels) > READABLE_CELLS else None)
    longest = max(map(len, labels)) * 7 if len(labels) > READABLE_CELLS else 20
    figure.update_layout(height=110 + KEY_HEIGHT + longest + CELL_HEIGHT * len(rows), margin_b=KEY_HEIGHT)
    return figure


def _largest_change(stages: ComparedStages, labels: list[str]) -> str:
    """Say which stage's thread time differs most from the baseline's."""
    found = [
        (stages.difference_ns(row, run) or 0.0, row, run)
        for row in stages.rows
        for run in range(1, len(stages.sources))
    ]
    change, row, run = max(found, key=lambda one: abs(one[0]), default=(0.0, None, 0))
    if row is None or not change:
        return "No stage's thread time is known to differ."
    name, more = short_labels([row.name])[0], "less" if change < 0 else "more"
    return f"{name} changes most: {format_duration(abs(change))} {more} thread time per batch in {labels[run]}."


def _names(rows: list[StageRow]) -> list[str]:
    return short_labels([row.name for row in rows])


def _with_notes(figure: go.Figure, stages: ComparedStages, labels: list[str]) -> go.Figure:
    say(figure, _largest_change(stages, labels))
    if len(stages.rows) > MAX_ROWS:
        add_note(figure, f"The {MAX_ROWS} costliest of {len(stages.rows)} stages.")
    for note in stages.notes:
        add_note(figure, note)
    return figure
