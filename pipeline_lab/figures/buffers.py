"""Buffers and parallelism of a pipeline's stages over the time of the run, one panel each."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from pipeline_lab.analysis.live_model import LiveModel
from pipeline_lab.analysis.pipeline_stages import join_stages, stage_labels, trace_path
from pipeline_lab.analysis.tf_data.results import TfData
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.aggregate import column
from pipeline_lab.figures.panels import Panel, draw_panels
from pipeline_lab.figures.theme import Mode, add_note
from pipeline_lab.runs.written import WrittenPipeline
from pipeline_lab.units import NS_PER_S, format_bytes, format_duration

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
