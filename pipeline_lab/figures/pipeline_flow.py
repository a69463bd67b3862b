"""The pipeline that ran, drawn as a pipeline: boxes in the order of the code, arrows that carry the batches and the wait, and beside
each box the time that its threads take and how full its buffer is.
"""

import html

import numpy as np
import plotly.graph_objects as go

from pipeline_lab.analysis.input.live_model import LiveModel
from pipeline_lab.analysis.input.pipeline_stages import PipelineStage, join_stages
from pipeline_lab.analysis.tf_data.iterator_places import is_upstream, place_above
from pipeline_lab.analysis.tf_data.tf_data import StageOrigin, TfData
from pipeline_lab.analysis.tf_data.written_words import ROOTS, say_calls
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.marks import stage_place
from pipeline_lab.figures.theme import THEMES, Mode, add_note, color, end_axis, faint, new_figure, say
from pipeline_lab.runs.run_documents import WrittenPipeline
from pipeline_lab.units import duration_unit, format_duration, format_duration_in, format_percent, write_number

ROW_HEIGHT, FRAME_HEIGHT = 56, 118
MAX_STAGES = 24
MAX_LINE = 40
"""Characters of a line in a box."""
INDENT, DEEPEST = 0.06, 4
"""How far a further input of a stage stands to the right, as a part of the boxes' column, and how often."""
BOX_HEIGHT = 0.64
"""Of a row; the rest is for the arrow."""
THINNEST, THICKEST = 1.2, 6.0
"""Width of an arrow that carries no wait, and all of it, pixels."""
FILL_OPACITY = 0.55
"""Of a buffer's content, so that how full it is can be read on it."""
BLAMED_SHARE, INVOLVED_SHARE = 0.5, 0.05
"""Parts of the exposed wait from which a stage counts as the one to blame, and as one of several."""

LEAST_WAIT_SHARE = 0.01
"""Of the recorded time: who causes less wait than this is not worth finding."""

_BLAMED, _INVOLVED, _FREE = "caused most of the wait", "caused some of it", "caused none or little"
_COLORS = {_BLAMED: "input_wait", _INVOLVED: "hidden_wait", _FREE: "busy"}
_MARKS = {
    StageOrigin.FUSED: "fused",
    StageOrigin.INJECTED: "put in by TensorFlow",
    StageOrigin.PARALLELISED: "made parallel",
}


@dataclass(frozen=True)
class _Box:
    """One stage on the chart.

    Attributes:
        stage: What it shows.
        number: Of the stage in the whole pipeline.
        row: From the top, the source being 0.
        indent: Inputs of the same stage to the left of it.
        consumer: Row of the box that its elements go to.
        carried_ns: Exposed wait that it and what is upstream of it caused.
    """

    stage: PipelineStage
    number: int
    row: int
    indent: int
    consumer: int
    carried_ns: int

    @property
    def left(self) -> float:
        return INDENT * min(self.indent, DEEPEST)


def pipeline_stages(
    tf_data: TfData | Unavailable,
    model: LiveModel | Unavailable,
    written: WrittenPipeline | Unavailable,
    mode: Mode = "light",
) -> go.Figure | Unavailable:
    """Draw every stage as a box, the source on top, with arrows to the training step that are as thick as the wait they carry."""
    stages = join_stages(tf_data, model, written)
    if isinstance(stages, Unavailable):
        return stages
    boxes = _place(stages)
    total_ns = sum(stage.exposed_ns or 0 for stage in stages)
    if not isinstance(tf_data, Unavailable) and total_ns < LEAST_WAIT_SHARE * tf_data.observed_ns:
        total_ns = 0
    rows = len(boxes) + 1
    figure = new_figure("The pipeline that ran, stage by stage", mode, "", "", height=FRAME_HEIGHT + ROW_HEIGHT * rows)
    say(figure, _caption(stages, total_ns))
    has_buffers = any(box.stage.buffered_elements is not None for box in boxes)
    _lay_out(figure, rows, has_buffers)
    unit = duration_unit(max(box.stage.work_ns for box in boxes))
    for name, category in _COLORS.items():
        mine = [box for box in boxes if _blame(box.stage, total_ns) == name]
        if mine:
            _add_boxes(figure, mine, name, color(category, mode), mode, is_told=total_ns > 0)
            _add_thread_times(figure, mine, color(category, mode), unit)
    add_training_step(figure, rows - 1, mode)
    _add_arrows(figure, boxes, total_ns, mode)
    if has_buffers:
        _add_buffers(figure, boxes, mode)
    longest = max(box.stage.work_ns for box in boxes) / unit[0]
    end_axis(figure, longest, room=2.1, axis="xaxis2", ticks=2)
    figure.update_layout({"xaxis2": {"title": {"text": f"Thread time per batch ({unit[1]})"}}})
    known = sum(stage.name not in ROOTS for stage in stages)
    if len(boxes) < known:
        add_note(figure, f"The {len(boxes)} costliest of {known} stages.")
    if isinstance(model, Unavailable):
        add_note(figure, "Thread time from the trace: mean over its windows.")
    return figure


def _place(stages: tuple[PipelineStage, ...]) -> list[_Box]:
    """Give each stage that fits on the chart its row, what it reads above it."""
    shown = {stage.path: number for number, stage in enumerate(stages) if stage.name not in ROOTS or len(stages) == 1}
    kept = sorted(shown, key=lambda path: -max(stages[shown[path]].work_ns, stages[shown[path]].exposed_ns or 0))
    shown = {path: number for path, number in shown.items() if path in kept[:MAX_STAGES]}
    consumers = {path: _consumer(path, shown) for path in shown}
    order: list[tuple[str, int]] = []

    def visit(consumer: str, indent: int) -> None:
        inputs = [path for path in shown if consumers[path] == consumer]
        for place, path in enumerate(inputs):
            visit(path, indent + place)
            order.append((path, indent + place))

    visit("", 0)
    rows = {path: row for row, (path, _) in enumerate(order)}
    return [
        _Box(
            stages[shown[path]],
            shown[path],
            rows[path],
            indent,
            rows.get(consumers[path], len(order)),
            sum(stage.exposed_ns or 0 for stage in stages if stage.path == path or is_upstream(stage.path, path)),
        )
        for path, indent in order
    ]


def _consumer(path: str, shown: dict[str, int]) -> str:
    """Return the nearest stage downstream that is drawn; empty where that is the training step."""
    above = place_above(path)
    while above and above not in shown:
        above = place_above(above)
    return above


def _lay_out(figure: go.Figure, rows: int, has_buffers: bool) -> None:
    """Divide the width: boxes, thread time, buffers."""
    ends = (0.5, 0.55, 0.84, 0.89) if has_buffers else (0.58, 0.63, 1.0, 1.0)
    hidden = {"showgrid": False, "zeroline": False, "showticklabels": False, "fixedrange": True}
    figure.update_layout(
        xaxis={"domain": [0, ends[0]], "range": [0, 1], **hidden},
        xaxis2={"domain": [ends[1], ends[2]], "anchor": "y", "fixedrange": True},
        yaxis={"range": [rows - 0.55, -0.45], **hidden},
        barmode="overlay",
        bargap=1 - BOX_HEIGHT,
        dragmode=False,
    )
    if has_buffers:
        buffers = {"domain": [ends[3], 1], "anchor": "y", "range": [0, 1], "title": {"text": "Buffer"}}
        figure.update_layout(xaxis3={**hidden, **buffers})


def _add_boxes(figure: go.Figure, boxes: list[_Box], name: str, shade: str, mode: Mode, *, is_told: bool) -> None:
    figure.add_bar(
        base=[box.left for box in boxes],
        x=[1 - box.left for box in boxes],
        y=[box.row for box in boxes],
        ids=[stage_place(box.number) for box in boxes],
        orientation="h",
        name=name,
        marker={"color": faint(shade), "line": {"width": 2.5 if name == _BLAMED else 1.2, "color": shade}},
        unselected={"marker": {"opacity": 1}},
        hovertext=[_details(box.stage) for box in boxes],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=is_told,
    )
    figure.add_scatter(  # text of bars would be centered line by line
        x=[box.left for box in boxes],
        y=[box.row for box in boxes],
        ids=[stage_place(box.number) for box in boxes],
        mode="text",
        text=[_label(box.stage) for box in boxes],
        textposition="middle right",
        textfont={"color": THEMES[mode].ink, "size": 12},
        hoverinfo="skip",
        showlegend=False,
    )


def _add_thread_times(figure: go.Figure, boxes: list[_Box], shade: str, unit: tuple[int, str]) -> None:
    figure.add_bar(
        x=[box.stage.work_ns / unit[0] for box in boxes],
        y=[box.row for box in boxes],
        xaxis="x2",
        ids=[stage_place(box.number) for box in boxes],
        orientation="h",
        width=0.4,
        marker={"color": shade, "line": {"width": 0}},
        unselected={"marker": {"opacity": 1}},
        text=[format_duration_in(box.stage.work_ns, unit) for box in boxes],
        textposition="outside",
        cliponaxis=False,
        hovertext=[_details(box.stage) for box in boxes],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=False,
    )


def add_training_step(figure: go.Figure, row: int, mode: Mode) -> None:
    """Draw the box that takes what the last stage makes, over the whole width of the boxes' column."""
    figure.add_bar(
        base=[0],
        x=[1],
        y=[row],
        width=BOX_HEIGHT,
        orientation="h",
        marker={"color": THEMES[mode].shade, "line": {"width": 1.2, "color": THEMES[mode].muted}},
        text=["<b>training step</b>"],
        textposition="inside",
        insidetextanchor="start",
        insidetextfont={"color": THEMES[mode].ink, "size": 12},
        hovertemplate="The training step takes one batch after another.<extra></extra>",
        showlegend=False,
    )


def _add_arrows(figure: go.Figure, boxes: list[_Box], total_ns: int, mode: Mode) -> None:
    """Draw an arrow from each box to the one that its elements go to, as thick as the wait that it carries."""
    for box in boxes:
        share = box.carried_ns / total_ns if total_ns else 0.0
        x = box.left + INDENT / 2
        figure.add_annotation(
            x=x,
            y=box.consumer - BOX_HEIGHT / 2,
            ax=x,
            ay=box.row + BOX_HEIGHT / 2,
            axref="x",
            ayref="y",
            showarrow=True,
            arrowhead=2,
            arrowsize=1.2 - 0.6 * share,
            arrowwidth=THINNEST + (THICKEST - THINNEST) * share,
            arrowcolor=color("input_wait", mode) if share >= INVOLVED_SHARE else THEMES[mode].muted,
            text="",
        )


def _add_buffers(figure: go.Figure, boxes: list[_Box], mode: Mode) -> None:
    """Draw how full each buffer was on average, where a stage has one."""
    mine = [box for box in boxes if box.stage.buffered_elements is not None]
    limits = [box.stage.buffer_limit or np.nan for box in mine]
    held = [float(box.stage.buffered_elements or 0) for box in mine]
    rows, axes = [box.row for box in mine], {"xaxis": "x3", "orientation": "h", "width": 0.4, "showlegend": False}
    figure.add_bar(y=rows, x=[1] * len(mine), marker={"color": THEMES[mode].shade}, hoverinfo="skip", **axes)
    figure.add_bar(
        y=rows,
        x=[min(1.0, one / limit) if limit > 0 else 0.0 for one, limit in zip(held, limits, strict=True)],
        marker={"color": color("tf_data", mode), "opacity": FILL_OPACITY},
        hovertext=[
            f"{write_number(one)} elements ready" + (f" of {write_number(limit)}" if limit > 0 else "")
            for one, limit in zip(held, limits, strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        **axes,
    )
    for row, one, limit in zip(rows, held, limits, strict=True):
        figure.add_annotation(
            x=0.5,
            y=row,
            xref="x3",
            yref="y",
            text=format_percent(100 * one / limit) if limit > 0 else write_number(one),
            showarrow=False,
            font={"size": 11},
        )


def _blame(stage: PipelineStage, total_ns: int) -> str:
    share = (stage.exposed_ns or 0) / total_ns if total_ns else 0.0
    return _BLAMED if share >= BLAMED_SHARE else _INVOLVED if share >= INVOLVED_SHARE else _FREE


def _caption(stages: tuple[PipelineStage, ...], total_ns: int) -> str:
    if total_ns:
        worst = max(stages, key=lambda stage: stage.exposed_ns or 0)
        share = format_percent(100 * (worst.exposed_ns or 0) / total_ns)
        return f"{_short(_name(worst))} causes {share} of the wait; it takes {format_duration(worst.work_ns)} of threads per batch."
    worst = max(stages, key=lambda stage: stage.work_ns)
    whole = sum(stage.work_ns for stage in stages)
    share = format_percent(100 * worst.work_ns / whole) if whole else "0 %"
    return f"{_short(_name(worst))} takes most thread time: {format_duration(worst.work_ns)} per batch, {share} of all."


def _name(stage: PipelineStage) -> str:
    return say_calls(stage.written) or stage.name


def _label(stage: PipelineStage) -> str:
    """Return what was written, and below it what ran for it."""
    mark = _MARKS.get(stage.origin) if stage.origin else None
    words = ", ".join(filter(None, (stage.name if stage.written else "", mark)))
    return f"<b>{_short(_name(stage))}</b>" + (f"<br>{_short(words)}" if words else "")


def _short(text: str) -> str:
    return html.escape(text if len(text) <= MAX_LINE else f"{text[: MAX_LINE - 1]}…", quote=False)


def _details(stage: PipelineStage) -> str:
    lines = [
        f"<b>{html.escape(stage.name)}</b>",
        f"written: {html.escape(say_calls(stage.written))}" if stage.written else "",
        f"{format_duration(stage.exposed_ns)} of the wait that left the device idle" if stage.exposed_ns else "",
        f"{format_duration(stage.work_ns)} of thread time for one batch",
        f"{stage.visits_per_batch:.4g} elements for one batch",
        f"{stage.parallelism:.3g} parallel calls" if stage.parallelism is not None else "",
    ]
    return "<br>".join(line for line in lines if line)
