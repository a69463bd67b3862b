"""What the device waited for, and the buffers and the parallelism of the stages over time."""

import html

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from pipeline_lab.analysis.input.live_model import LiveModel
from pipeline_lab.analysis.input.pipeline_stages import PipelineStage, join_stages, stage_labels, trace_path
from pipeline_lab.analysis.tf_data.tf_data import QUEUEING, UNSEEN, CriticalPath, PathShare, TfData
from pipeline_lab.analysis.tf_data.written_words import calls_of_stages, say_calls
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.aggregate import column
from pipeline_lab.figures.panels import Panel, draw_panels
from pipeline_lab.figures.theme import Mode, add_note, color, end_axis, new_figure, say
from pipeline_lab.runs.run_documents import WrittenPipeline
from pipeline_lab.units import (
    NS_PER_S,
    duration_unit,
    format_bytes,
    format_duration,
    format_duration_in,
    format_percent,
    write_number,
)

MAX_SHARES = 10


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
    unit = duration_unit(max(values))
    figure = new_figure(
        "What the device waited for", mode, f"Exposed wait ({unit[1]})", "", height=120 + 34 * max(2, len(names))
    )
    say(
        figure,
        f"{names[0]}: {format_percent(100 * values[0] / path.exposed_ns)} of the wait that left the device idle.",
    )
    add_note(figure, f"Of {format_duration(path.exposed_ns)} in which the device idled for input.")
    shown = [f"{format_duration_in(value, unit)} · {format_percent(100 * value / path.exposed_ns)}" for value in values]
    figure.add_bar(
        y=list(range(len(names))),  # two stages may have one name
        x=[value / unit[0] for value in values[::-1]],
        orientation="h",
        marker={"color": colors[::-1]},
        text=shown[::-1],
        textposition="outside",
        cliponaxis=False,
        hovertext=names[::-1],
        hovertemplate="%{hovertext}: %{text}<extra></extra>",
        showlegend=False,
    )
    end_axis(figure, max(values) / unit[0], shown)
    lines = [name.replace(" · ", "<br>") for name in names[::-1]]
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=lines, showgrid=False)
    figure.update_layout(dragmode=False)
    return figure


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
    say(figure, _emptiest(join_stages(tf_data, model, written)))
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
    widest = max(panels, key=lambda panel: float(np.nanmax(panel.values)))
    most = float(np.nanmax(widest.values))
    say(
        figure,
        f"{html.escape(widest.label, quote=False)} may make most: {most:g} {'call' if most == 1 else 'calls'} at a time.",
    )
    if not isinstance(model, Unavailable):
        changed = model.last_change_ns
        add_note(
            figure,
            "Nothing was changed by AUTOTUNE while it was watched."
            if changed is None
            else f"AUTOTUNE last changed a running stage {format_duration(max(0, changed))} after the first step.",
        )
    return figure


def _emptiest(stages: tuple[PipelineStage, ...] | Unavailable) -> str:
    """Name the buffer that is emptiest on average, by the averages of the picture of the pipeline; empty where none has one."""
    found = [] if isinstance(stages, Unavailable) else [each for each in stages if each.buffered_elements is not None]
    if isinstance(stages, Unavailable) or not found:
        return ""
    emptiest = min(found, key=lambda each: (each.buffered_elements or 0.0) / (each.buffer_limit or 1.0))
    held = write_number(emptiest.buffered_elements or 0.0)
    held += f" of {write_number(emptiest.buffer_limit)}" if emptiest.buffer_limit else ""
    name = html.escape(stage_labels(stages).get(emptiest.path, emptiest.name), quote=False)
    return f"{name} is the emptiest: {held} elements ready on average."


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
    windows = column(table, "window")[rows]  # nothing is known of the time between them
    return Panel(label, column(table, "start_ns", NS_PER_S)[rows], values, limits, windows)
