"""The pipeline that ran: what each stage costs, which of them the device waited for, and their buffers and parallelism over time."""

import html

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from pipeline_lab.analysis.input.live_model import LiveModel
from pipeline_lab.analysis.input.pipeline_stages import PipelineStage, join_stages, stage_labels, trace_path
from pipeline_lab.analysis.tf_data.tf_data import QUEUEING, UNSEEN, CriticalPath, PathShare, StageOrigin, TfData
from pipeline_lab.analysis.tf_data.written_words import calls_of_stages, say_calls
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.aggregate import column
from pipeline_lab.figures.marks import stage_place
from pipeline_lab.figures.panels import Panel, draw_panels
from pipeline_lab.figures.theme import Mode, add_note, color, new_figure
from pipeline_lab.runs.run_documents import WrittenPipeline
from pipeline_lab.units import NS_PER_MS, NS_PER_S, format_bytes, format_duration, format_percent

ROW_HEIGHT, FRAME_HEIGHT = 42, 110
MAX_STAGES = 24
MAX_SHARES = 10
MAX_LABEL, MAX_LINE_LABEL = 24, 36
"""Characters below a bar: of a name, and of a call with its file and line."""
BLAMED_SHARE = 0.5
"""A stage that caused this much of the exposed wait is drawn in the color of input waits."""

_BLAMED, _INVOLVED, _FREE = "caused most of the wait", "caused some of it", "caused none or little"
_COLOURS = {_BLAMED: "input_wait", _INVOLVED: "hidden_wait", _FREE: "busy"}
_MARKS = {
    StageOrigin.FUSED: "fused",
    StageOrigin.INJECTED: "put in by TensorFlow",
    StageOrigin.PARALLELISED: "made parallel",
}


def pipeline_stages(
    tf_data: TfData | Unavailable,
    model: LiveModel | Unavailable,
    written: WrittenPipeline | Unavailable,
    mode: Mode = "light",
) -> go.Figure | Unavailable:
    """Draw every stage's thread time for one batch, the consumer on top, colored by the wait that it caused."""
    stages = join_stages(tf_data, model, written)
    if isinstance(stages, Unavailable):
        return stages
    shown = _costliest(stages)
    figure = new_figure(
        "The pipeline that ran, stage by stage",
        mode,
        "Thread time for one batch (ms)",
        "",
        height=FRAME_HEIGHT + ROW_HEIGHT * max(3, len(shown)),
    )
    blame = _blame(stages)
    for name, category in _COLOURS.items():
        mine = [stage for stage in shown if blame[stage.path] == name]
        if mine:
            figure.add_bar(
                y=[stage.path for stage in mine],
                ids=[stage_place(stages.index(stage)) for stage in mine],
                x=[stage.work_ns / NS_PER_MS for stage in mine],
                orientation="h",
                name=name,
                marker={"color": color(category, mode)},
                unselected={"marker": {"opacity": 1}},
                text=[_cost(stage, stages) for stage in mine],
                textposition="outside",
                cliponaxis=False,
                hovertext=[_details(stage) for stage in mine],
                hovertemplate="%{hovertext}<extra></extra>",
                showlegend=stages[0].exposed_ns is not None,
            )
    figure.update_yaxes(
        categoryorder="array",
        categoryarray=[stage.path for stage in reversed(shown)],
        tickvals=[stage.path for stage in shown],
        ticktext=[_label(stage) for stage in shown],
        showgrid=False,
    )
    longest = max(stage.work_ns for stage in shown) / NS_PER_MS
    figure.update_xaxes(range=[0, longest * 2.1 or 1], nticks=5)
    figure.update_layout(dragmode=False, bargap=0.4)
    if len(shown) < len(stages):
        add_note(figure, f"The {len(shown)} costliest of {len(stages)} stages.")
    if isinstance(model, Unavailable):
        add_note(figure, "Thread time from the trace: mean over its windows.")
    return figure


def critical_path(
    tf_data: TfData, written: WrittenPipeline | Unavailable, mode: Mode = "light"
) -> go.Figure | Unavailable:
    """Draw what the job waited for whenever the device idled for input."""
    path = tf_data.critical_path
    if isinstance(path, Unavailable):
        return path
    if not path.exposed_ns:
        return Unavailable("No wait for input left the device idle, so there is none to explain.")
    rows, rest_ns = _largest(path)
    names = [_share_name(share, tf_data, written) for share in rows]
    values = [share.exposed_ns for share in rows]
    colors = [_share_color(share, mode) for share in rows]
    if rest_ns:
        names, values, colors = [*names, "all others"], [*values, rest_ns], [*colors, color("unknown", mode)]
    figure = new_figure(
        "What the device waited for", mode, "Exposed wait (ms)", "", height=120 + 34 * max(2, len(names))
    )
    add_note(figure, f"Of {format_duration(path.exposed_ns)} in which the device idled for input.")
    figure.add_bar(
        y=list(range(len(names))),  # two stages may have one name
        x=[value / NS_PER_MS for value in values[::-1]],
        orientation="h",
        marker={"color": colors[::-1]},
        text=[f"{format_duration(value)} · {format_percent(100 * value / path.exposed_ns)}" for value in values[::-1]],
        textposition="outside",
        cliponaxis=False,
        hovertext=names[::-1],
        hovertemplate="%{hovertext}: %{text}<extra></extra>",
        showlegend=False,
    )
    figure.update_xaxes(range=[0, max(values) / NS_PER_MS * 1.9], nticks=5)
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=names[::-1], showgrid=False)
    figure.update_layout(dragmode=False)
    return figure


def _costliest(stages: tuple[PipelineStage, ...]) -> list[PipelineStage]:
    """Return the stages that fit on a chart, in the order of the pipeline."""
    kept = sorted(stages, key=lambda stage: -max(stage.work_ns, stage.exposed_ns or 0))[:MAX_STAGES]
    return [stage for stage in stages if stage in kept]


def _blame(stages: tuple[PipelineStage, ...]) -> dict[str, str]:
    total = sum(stage.exposed_ns or 0 for stage in stages)
    shares = {stage.path: (stage.exposed_ns or 0) / total if total else 0.0 for stage in stages}
    return {
        path: _BLAMED if share >= BLAMED_SHARE else _INVOLVED if share >= 0.05 else _FREE
        for path, share in shares.items()
    }


def _label(stage: PipelineStage) -> str:
    """Return the stage that ran with what was written for it on a second line."""
    mark = _MARKS.get(stage.origin) if stage.origin else None
    words = say_calls(stage.written) or mark or ""
    if stage.written and mark:
        words = f"{words}, {mark}"
    most = MAX_LINE_LABEL if any(call.place for call in stage.written) else MAX_LABEL
    return f"{_short(stage.name)}<br><i>{_short(words, most)}</i>" if words else _short(stage.name)


def _short(text: str, most: int = MAX_LABEL) -> str:
    return html.escape(text if len(text) <= most else f"{text[: most - 1]}…", quote=False)


def _cost(stage: PipelineStage, stages: tuple[PipelineStage, ...]) -> str:
    total = sum(other.exposed_ns or 0 for other in stages)
    blame = f" · {format_percent(100 * stage.exposed_ns / total)} of wait" if stage.exposed_ns and total else ""
    return f"{format_duration(stage.work_ns)}{blame}"


def _details(stage: PipelineStage) -> str:
    lines = [
        f"<b>{html.escape(stage.name)}</b>",
        f"written: {html.escape(say_calls(stage.written))}" if stage.written else "",
        f"{format_duration(stage.work_ns)} of thread time for one batch",
        f"{stage.visits_per_batch:.4g} elements for one batch",
        f"{stage.parallelism:.3g} parallel calls" if stage.parallelism is not None else "",
    ]
    return "<br>".join(line for line in lines if line)


def _largest(path: CriticalPath) -> tuple[list[PathShare], int]:
    """Return the largest shares of the exposed wait and the sum of the others, ns."""
    told = [share for share in path.shares if share.exposed_ns > 0]
    shown = sorted(told, key=lambda share: -share.exposed_ns)[:MAX_SHARES]
    return shown, sum(share.exposed_ns for share in told) - sum(share.exposed_ns for share in shown)


def _share_name(share: PathShare, tf_data: TfData, written: WrittenPipeline | Unavailable) -> str:
    """Return what was done and by which stage, as it was written where that is known."""
    if share.stage is None:
        return html.escape(share.what, quote=False)
    stage = tf_data.stages[share.stage]
    calls = {} if isinstance(written, Unavailable) else calls_of_stages(written, tf_data.stages)
    return html.escape(f"{share.what} · {say_calls(calls.get(stage.path, ())) or stage.name}", quote=False)


def _share_color(share: PathShare, mode: Mode) -> str:
    if share.what == UNSEEN:
        return color("unknown", mode)
    return color("hidden_wait" if share.what == QUEUEING else "input_wait", mode)


NO_BUFFERS = Unavailable("No stage of this pipeline keeps elements ready, so there is no buffer to draw.")
NO_PARALLELISM = Unavailable("No stage of this pipeline makes parallel calls, so there is nothing to draw.")


def buffers_over_time(
    tf_data: TfData | Unavailable,
    model: LiveModel | Unavailable,
    written: WrittenPipeline | Unavailable,
    mode: Mode = "light",
) -> go.Figure | Unavailable:
    """Draw how many elements lay ready in each stage's buffer, with its limit."""
    if isinstance(model, Unavailable) and isinstance(tf_data, Unavailable):
        return tf_data
    panels = _panels(tf_data, model, _labels(tf_data, model, written), "buffered_elements")
    if not panels:
        return NO_BUFFERS
    figure = draw_panels("Elements ready in each buffer", panels, mode)
    if not isinstance(model, Unavailable):
        add_note(
            figure,
            f"Dashed: the limit. All buffers held {format_bytes(model.peak_bytes)} at most; "
            f"tf.data allows {format_bytes(model.ram_budget_bytes)}.",
        )
    return figure


def parallelism_over_time(
    tf_data: TfData | Unavailable,
    model: LiveModel | Unavailable,
    written: WrittenPipeline | Unavailable,
    mode: Mode = "light",
) -> go.Figure | Unavailable:
    """Draw how many parallel calls each stage was allowed."""
    if isinstance(model, Unavailable) and isinstance(tf_data, Unavailable):
        return tf_data
    panels = _panels(tf_data, model, _labels(tf_data, model, written), "parallelism")
    if not panels:
        return NO_PARALLELISM
    figure = draw_panels("Parallel calls that each stage may make", panels, mode)
    if not isinstance(model, Unavailable):
        changed = model.last_change_ns
        add_note(
            figure,
            "Nothing was changed by AUTOTUNE while it was watched."
            if changed is None
            else f"AUTOTUNE last changed a running stage {format_duration(max(0, changed))} after the first step.",
        )
    return figure


def _labels(
    tf_data: TfData | Unavailable, model: LiveModel | Unavailable, written: WrittenPipeline | Unavailable
) -> dict[str, str]:
    stages = join_stages(tf_data, model, written)
    return {} if isinstance(stages, Unavailable) else stage_labels(stages)


def _panels(
    tf_data: TfData | Unavailable, model: LiveModel | Unavailable, labels: dict[str, str], name: str
) -> list[Panel]:
    """Return the stages that have such values, from the model where there is one."""
    found: list[Panel] = []
    if not isinstance(model, Unavailable):
        limits = _shuffle_limits(tf_data)
        found = [
            _live_panel(model, number, name, (labels.get(trace_path(stage.path), stage.name), limits.get(stage.path)))
            for number, stage in enumerate(model.stages)
            if (stage.parallelism is not None if name == "parallelism" else stage.peak_bytes > 0)
        ]
    elif not isinstance(tf_data, Unavailable):
        stages = column(tf_data.history, "stage")
        found = [
            _trace_panel(tf_data, stages == stage.number, name, labels.get(stage.path, stage.name))
            for stage in tf_data.stages
        ]
    return [panel for panel in found if np.isfinite(panel.values).any()]


def _shuffle_limits(tf_data: TfData | Unavailable) -> dict[str, int]:
    """Return limits that only the trace knows, by the stage's place."""
    if isinstance(tf_data, Unavailable):
        return {}
    return {stage.path: stage.buffer_limit for stage in tf_data.stages if stage.buffer_limit is not None}


def _live_panel(model: LiveModel, number: int, name: str, told: tuple[str, int | None]) -> Panel:
    """Draw a stage of the model; ``told`` is its label, and a limit that only the trace knows."""
    label, limit = told
    table = model.timeline
    rows = column(table, "stage") == number
    values, limits = column(table, name)[rows], column(table, "buffer_limit")[rows]
    if name == "parallelism":
        limits = np.full(len(values), np.nan)
    elif limit is not None:
        limits = np.where(np.isfinite(limits), limits, float(limit))
    return Panel(label, column(table, "time_ns", NS_PER_S)[rows], values, limits)


def _trace_panel(tf_data: TfData, rows: NDArray[np.bool_], name: str, label: str) -> Panel:
    table = tf_data.history
    values = column(table, name)[rows]
    limits = column(table, "buffer_limit")[rows] if name != "parallelism" else np.full(len(values), np.nan)
    return Panel(label, column(table, "start_ns", NS_PER_S)[rows], values, limits)
