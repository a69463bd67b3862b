"""Runs side by side: shared axes for what they did, and differences drawn as differences."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.comparison.measures import Measure
from pipeline_lab.comparison.recorded_runs import Comparison
from pipeline_lab.comparison.step_time_ratio import LARGE, StepTimeRatio
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.aggregate import FloatArray
from pipeline_lab.figures.comparing.overlaid_runs import run_labels
from pipeline_lab.figures.theme import THEMES, Mode, add_note, color, new_figure, row_height, say
from pipeline_lab.units import format_bytes, format_percent, write_number

ROW_HEIGHT = 34
MB = 1e6


def step_time_difference(comparison: Comparison, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw each candidate's time per step as a difference from the baseline's, with its interval."""
    labels = run_labels(comparison.runs)[1:]
    found = [
        (label, ratio)
        for label, ratio in zip(labels, comparison.step_time, strict=True)
        if isinstance(ratio, StepTimeRatio)
    ]
    if not found:
        return next(ratio for ratio in comparison.step_time if isinstance(ratio, Unavailable))
    percent = [ratio.percent for _, ratio in found]
    low, high = zip(*(ratio.bounds_percent for _, ratio in found), strict=True)
    figure = rows_figure(
        f"Time per {found[0][1].per} against the baseline", mode, "Difference (%; left is faster)", len(found)
    )
    add_intervals(figure, [label for label, _ in found], percent, low, high, mode)
    mark_zero(figure, mode)
    label, best = min(found, key=lambda one: one[1].percent)
    more = "less" if best.percent < 0 else "more"
    change = (
        f"{write_number(best.ratio)} times the"
        if best.ratio >= LARGE
        else f"{format_percent(abs(best.percent))} {more}"
    )
    say(figure, f"{label} takes {change} time per {best.per}: {best.outcome.value}.")
    add_note(figure, f"Bars: {found[0][1].confidence * 100:.3g} % interval. Drift between the recordings comes on top.")
    if len(found) < len(labels):
        add_note(figure, f"{len(labels) - len(found)} could not be compared.")
    return figure


def stalls_by_run(comparison: Comparison, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw each run's input wait per step: what left the device idle, and what hid behind its work."""
    wait, exposed = (comparison.find_measure(name) for name in ("wait_ms", "exposed_ms"))
    if wait is None or exposed is None:
        return Unavailable("No run has input waits; record profile windows.")
    labels = run_labels(comparison.runs)
    figure = rows_figure("Input wait per step", mode, "Time per profiled step (ms)", len(labels))
    idle = _values(exposed)
    say(figure, _contrast("The device idles for input", labels, idle, "ms per step"))
    for name, values, category in (
        ("device idle meanwhile", idle, "input_wait"),
        ("hidden behind device work", np.maximum(_values(wait) - idle, 0), "hidden_wait"),
    ):
        add_bars(figure, labels, values, name, category, mode)
    return figure


def idle_by_run(comparison: Comparison, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw each run's idle time per step, divided by cause."""
    causes = _cause_measures(comparison)
    if not causes:
        return Unavailable("No run has idle gaps; record profile windows.")
    labels = run_labels(comparison.runs)
    figure = rows_figure("Device idle per step, by cause", mode, "Time per profiled step (ms)", len(labels), legend=2)
    say(
        figure,
        _contrast(
            "The device idles", labels, np.sum([_values(each) for each in causes.values()], axis=0), "ms per step"
        ),
    )
    for cause, each in causes.items():
        add_bars(figure, labels, _values(each), cause.label, cause.value, mode)
    _note_missing(figure, next(iter(causes.values())))
    return figure


def idle_difference(comparison: Comparison, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw what each candidate idled more or less than the baseline, for each cause."""
    causes = _cause_measures(comparison)
    candidates = range(1, len(comparison.runs))
    if all(each.difference(run) is None for each in causes.values() for run in candidates):
        return Unavailable("Baseline and candidate need idle gaps; record profile windows in both.")
    labels = run_labels(comparison.runs)[1:]
    figure = rows_figure(
        "Device idle, difference by cause", mode, "Against the baseline (ms per step; left is less)", len(labels), 2
    )
    figure.update_layout(barmode="relative")
    changes = [(each.difference(run), cause, labels[run - 1]) for cause, each in causes.items() for run in candidates]
    change, cause, label = max(
        ((value, cause, label) for value, cause, label in changes if value is not None), key=lambda one: abs(one[0])
    )
    say(
        figure,
        f"{cause.label.capitalize()} changes most: {abs(change):.3g} ms {'less' if change < 0 else 'more'} in {label}.",
    )
    for cause, each in causes.items():
        differences = [each.difference(run) for run in candidates]
        values = np.array([np.nan if value is None else value for value in differences], np.float64)
        if np.nan_to_num(values).any():
            add_bars(figure, labels, values, cause.label, cause.value, mode)
    if not figure.data:
        add_note(figure, "No cause differs.")
    figure.update_xaxes(rangemode="normal")
    mark_zero(figure, mode)
    return figure


def sampling_by_run(comparison: Comparison, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw how far each run's samples were from an even draw, with what chance alone would give."""
    distance = comparison.find_measure("beyond_share_percent")
    chance = comparison.find_measure("beyond_share_by_chance_percent")
    if distance is None:
        return Unavailable("No run has expected shares of its files; launch runs with the lab, or count the records.")
    labels = run_labels(comparison.runs)
    figure = rows_figure("Sampling skew", mode, "Share of the samples (%)", len(labels))
    say(figure, _contrast("Sampling skew", labels, _values(distance), "%"))
    add_bars(figure, labels, _values(distance), "observed", "busy", mode, unit="%")
    if chance is not None:
        figure.add_scatter(
            x=_values(chance),
            y=labels,
            mode="markers",
            name="chance alone",
            marker={"symbol": "line-ns", "size": 20, "line": {"width": 3, "color": color("input_wait", mode)}},
            hovertemplate="%{y}: chance alone %{x:.3g} %<extra></extra>",
        )
    _note_missing(figure, distance)
    return figure


def memory_by_run(comparison: Comparison, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw each run's peak memory."""
    peaks = comparison.find_measure("peak_memory_bytes")
    if peaks is None:
        return Unavailable("No run noted its memory; launch runs with the lab.")
    labels = run_labels(comparison.runs)
    figure = rows_figure("Peak memory of the job", mode, "Resident size (MB)", len(labels))
    values = _values(peaks)
    say(figure, _contrast("Memory peaks", labels, values / MB, "MB"))
    figure.add_bar(
        x=values / MB,
        y=labels,
        orientation="h",
        marker={"color": color("busy", mode), "line": {"width": 0}},
        text=["" if np.isnan(value) else format_bytes(value) for value in values],
        textposition="auto",
        hovertemplate="%{y}: %{text}<extra></extra>",
        showlegend=False,
    )
    _note_missing(figure, peaks)
    return figure


def _contrast(what: str, labels: list[str], values: FloatArray, unit: str) -> str:
    """Say the baseline's number beside that of the run which differs most from it."""
    known = [(label, float(value)) for label, value in zip(labels[1:], values[1:], strict=True) if np.isfinite(value)]
    if not np.isfinite(values[0]) or not known:
        return f"{what}: not measured on both sides."
    label, value = max(known, key=lambda one: abs(one[1] - values[0]))
    return f"{what}: {value:.3g} {unit} in {label}, {values[0]:.3g} {unit} in {labels[0]}."


def rows_figure(
    title: str, mode: Mode, x_title: str, rows: int, legend: int = 1, labels: Sequence[str] = ()
) -> go.Figure:
    """Return an empty chart with one row per run, the first on top; labels of several lines make rows higher."""
    height = row_height(labels, ROW_HEIGHT)
    figure = new_figure(title, mode, x_title, "", height=130 + 22 * legend + height * max(2, rows))
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    figure.update_layout(barmode="stack", dragmode=False, bargap=0.3, legend_traceorder="normal")
    return figure


def add_bars(
    figure: go.Figure, labels: list[str], values: FloatArray, name: str, category: str, mode: Mode, unit: str = "ms"
) -> None:
    figure.add_bar(
        x=values,
        y=labels,
        orientation="h",
        name=name,
        marker={"color": color(category, mode), "line": {"width": 0}},
        hovertemplate=f"%{{y}}: {name} %{{x:.3g}} {unit}<extra></extra>",
    )


def add_intervals(
    figure: go.Figure,
    labels: Sequence[str],
    values: Sequence[float] | FloatArray,
    low: Sequence[float] | FloatArray,
    high: Sequence[float] | FloatArray,
    mode: Mode,
    unit: str = "%",
    name: str | None = None,
) -> None:
    """Draw a value for each row, with its interval; a name puts them into the legend."""
    figure.add_scatter(
        x=values,
        y=labels,
        mode="markers",
        marker={"size": 11, "color": color("busy", mode)},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": np.subtract(high, values),
            "arrayminus": np.subtract(values, low),
            "color": color("busy", mode),
            "thickness": 2,
            "width": 6,
        },
        text=[f"{a:.3g} to {b:.3g}" for a, b in zip(low, high, strict=True)],
        hovertemplate=f"%{{y}}: %{{x:.3g}} {unit}, interval %{{text}}<extra></extra>",
        name=name,
        showlegend=name is not None,
    )


def mark_zero(figure: go.Figure, mode: Mode) -> None:
    figure.add_vline(x=0, line={"color": THEMES[mode].muted, "width": 1.5, "dash": "dot"})


def _note_missing(figure: go.Figure, each: Measure) -> None:
    missing = sum(isinstance(value, Unavailable) for value in each.values)
    if missing:
        add_note(figure, f"Not measured in {missing} of {len(each.values)} runs.")


def _cause_measures(comparison: Comparison) -> dict[GapCause, Measure]:
    found = {cause: comparison.find_measure(f"idle_{cause.value}_ms") for cause in GapCause}
    return {cause: each for cause, each in found.items() if each is not None and np.nan_to_num(_values(each)).any()}


def _values(each: Measure) -> FloatArray:
    """Return one number per run, NaN where it was not measured."""
    return np.array([np.nan if isinstance(value, Unavailable) else value for value in each.values], np.float64)
