"""Buffers and parallelism of a pipeline's stages over the time of the run, one panel each."""

import html
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from pipeline_lab.analysis.live_model import LiveModel
from pipeline_lab.analysis.pipeline_stages import join_stages, stage_labels, trace_path
from pipeline_lab.analysis.tf_data.results import TfData
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.aggregate import FloatArray, column, group_percentile, group_size, group_starts
from pipeline_lab.figures.theme import THEMES, Mode, add_note, colour, new_figure
from pipeline_lab.runs.written import WrittenPipeline
from pipeline_lab.units import NS_PER_S, format_bytes, format_duration

MAX_PANELS = 6
PANEL_POINTS = 200
PANEL_HEIGHT, LABEL_HEIGHT, FRAME_HEIGHT = 96, 18, 110

NO_BUFFERS = Unavailable("No stage of this pipeline keeps elements ready, so there is no buffer to draw.")
NO_PARALLELISM = Unavailable("No stage of this pipeline makes parallel calls, so there is nothing to draw.")


@dataclass(frozen=True)
class _Panel:
    """One stage's line over time, and the highest that it may be; NaN where that is not known."""

    label: str
    time_s: FloatArray
    values: FloatArray
    limit: FloatArray


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
    figure = _draw("Elements ready in each buffer", panels, mode)
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
    figure = _draw("Parallel calls that each stage may make", panels, mode)
    if not isinstance(model, Unavailable):
        changed = model.last_change_ns
        add_note(
            figure,
            "Nothing was changed by AUTOTUNE while it was watched."
            if changed is None
            else f"AUTOTUNE last changed something {format_duration(max(0, changed))} after the first step.",
        )
    return figure


def _labels(
    tf_data: TfData | Unavailable, model: LiveModel | Unavailable, written: WrittenPipeline | Unavailable
) -> dict[str, str]:
    stages = join_stages(tf_data, model, written)
    return {} if isinstance(stages, Unavailable) else stage_labels(stages)


def _panels(
    tf_data: TfData | Unavailable, model: LiveModel | Unavailable, labels: dict[str, str], name: str
) -> list[_Panel]:
    """Return the stages that have such values, from the model where there is one."""
    found: list[_Panel] = []
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
    return [panel for panel in found if np.isfinite(panel.values).any()][:MAX_PANELS]


def _shuffle_limits(tf_data: TfData | Unavailable) -> dict[str, int]:
    """Return limits that only the trace knows, by the stage's place."""
    if isinstance(tf_data, Unavailable):
        return {}
    return {stage.path: stage.buffer_limit for stage in tf_data.stages if stage.buffer_limit is not None}


def _live_panel(model: LiveModel, number: int, name: str, told: tuple[str, int | None]) -> _Panel:
    """Draw a stage of the model; ``told`` is its label, and a limit that only the trace knows."""
    label, limit = told
    table = model.timeline
    rows = column(table, "stage") == number
    values, limits = column(table, name)[rows], column(table, "buffer_limit")[rows]
    if name == "parallelism":
        limits = np.full(len(values), np.nan)
    elif limit is not None:
        limits = np.where(np.isfinite(limits), limits, float(limit))
    return _Panel(label, column(table, "time_ns", NS_PER_S)[rows], values, limits)


def _trace_panel(tf_data: TfData, rows: NDArray[np.bool_], name: str, label: str) -> _Panel:
    table = tf_data.history
    values = column(table, name)[rows]
    limits = column(table, "buffer_limit")[rows] if name != "parallelism" else np.full(len(values), np.nan)
    return _Panel(label, column(table, "start_ns", NS_PER_S)[rows], values, limits)


def _draw(title: str, panels: list[_Panel], mode: Mode) -> go.Figure:
    figure = new_figure(title, mode, "", "", height=FRAME_HEIGHT + PANEL_HEIGHT * len(panels))
    joined = 1
    for number, panel in enumerate(panels):
        joined = max(joined, _add_panel(figure, number, panel, len(panels), mode))
    figure.update_xaxes(matches="x", showticklabels=False, title_text="")
    figure.update_yaxes(nticks=4, title_text="")
    bottom = "xaxis" if len(panels) == 1 else f"xaxis{len(panels)}"
    figure.update_layout({bottom: {"title": {"text": "Time (s)"}, "showticklabels": True}})
    if joined > 1:
        add_note(figure, f"Each point is the median of up to {joined} samples.")
    return figure


def _add_panel(figure: go.Figure, number: int, panel: _Panel, panels: int, mode: Mode) -> int:
    """Add a panel below the earlier ones and return how many neighbours each of its points joins."""
    suffix = "" if number == 0 else str(number + 1)
    row, label = 1 / panels, LABEL_HEIGHT / PANEL_HEIGHT / panels
    top = 1 - number * row
    known = np.isfinite(panel.values)
    starts = group_starts(int(known.sum()), PANEL_POINTS)
    axes = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}", "mode": "lines", "showlegend": False}
    figure.add_scatter(
        x=panel.time_s[known][starts],
        y=group_percentile(panel.values[known], starts, 50),
        name=panel.label,
        line={"color": colour("busy", mode), "width": 1.6, "shape": "hv"},
        hovertemplate="%{fullData.name}, %{x:.3g} s: %{y:.3g}<extra></extra>",
        **axes,
    )
    if np.isfinite(panel.limit).any():
        figure.add_scatter(
            x=panel.time_s[known][starts],
            y=group_percentile(panel.limit[known], starts, 50),
            name=f"limit of {panel.label}",
            line={"color": colour("expected", mode), "width": 1.4, "dash": "dash"},
            hovertemplate="%{fullData.name}: %{y:.3g}<extra></extra>",
            **axes,
        )
    domain = [max(0, top - row + label / 2), top - label]
    figure.update_layout({f"xaxis{suffix}": {"anchor": f"y{suffix}"}, f"yaxis{suffix}": {"anchor": f"x{suffix}"}})
    ceiling = float(np.nanmax(np.concatenate((panel.values[known], panel.limit[known]))))
    figure.update_layout({f"yaxis{suffix}": {"domain": domain, "range": [0, 1.2 * ceiling or 1]}})
    figure.add_annotation(
        text=html.escape(panel.label, quote=False),
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
