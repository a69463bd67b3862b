"""How long the job waited for input: per step, over time, and how the waits are distributed."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from pipeline_lab.analysis.input.input_stalls import InputStalls
from pipeline_lab.analysis.steps.job_steps import NO_JOB_WAITS, JobSteps
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.aggregate import (
    FloatArray,
    column,
    group_mean,
    group_size,
    group_starts,
)
from pipeline_lab.figures.marks import event_places
from pipeline_lab.figures.theme import FEW, THEMES, Mode, add_medians, add_note, color, new_figure, say
from pipeline_lab.units import NS_PER_MS, NS_PER_S, format_count, format_duration, format_percent

MAX_BARS = 300
MAX_POINTS = 800
HISTOGRAM_BINS = 40
FAR_APART = 10.0
"""Steps that begin later than this many typical steps after the one before are not joined with it: nothing was measured between."""
LEAST_DECADES = 4.0
"""Lengths that differ by less than this factor have the round numbers of an ordinary axis."""


def stall_per_step(steps: Steps, mode: Mode = "light") -> go.Figure:
    """Draw each profiled step's input wait: the part that left the device idle, and the part hidden behind work."""
    figure = new_figure("Input wait per profiled step", mode, "Profiled step, in order of time", "Wait (ms)")
    wait = column(steps.table, "wait_ns", NS_PER_MS)
    exposed = np.minimum(column(steps.table, "exposed_ns", NS_PER_MS), wait)
    starts = group_starts(len(wait), MAX_BARS)
    if len(starts) < len(wait):
        add_note(figure, f"Each bar is the mean of {group_size(starts)} neighboring steps.")
    number = column(steps.table, "step")[starts]
    places = event_places("step", steps.table.column("start_ns").to_numpy()[starts])
    total = wait.sum()
    say(
        figure,
        f"{format_percent(100 * exposed.sum() / total)} of the wait leaves the device idle; it works during the rest."
        if total
        else "No profiled step waited for input.",
    )
    for name, part, category in (
        ("device idle meanwhile", exposed, "input_wait"),
        ("hidden behind device work", wait - exposed, "hidden_wait"),
    ):
        shown = {"x": starts + 1, "y": group_mean(part, starts), "customdata": number, "ids": places, "name": name}
        template = "step %{customdata:.0f}: %{y:.3g} ms " + name + "<extra></extra>"
        if len(wait) < FEW:
            dot = {"color": color(category, mode), "size": 10, "symbol": "circle" if part is exposed else "circle-open"}
            figure.add_scatter(mode="markers", marker=dot, hovertemplate=template, **shown)
        else:
            bar = {"color": color(category, mode), "line": {"width": 0}}
            figure.add_bar(marker=bar, hovertemplate=template, **shown)
    figure.update_layout(barmode="stack", bargap=0.1)
    if len(wait) < FEW:
        figure.update_xaxes(range=[0.5, len(wait) + 0.5], dtick=1)
    return figure


def stall_over_time(job: JobSteps, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw the wait of every step of the job, profiled or not, over the time of the run; steps whose waits were not timed are left out."""
    start, wait = column(job.table, "start_ns", NS_PER_S), column(job.table, "wait_ns", NS_PER_MS)
    known = np.isfinite(wait)
    if not known.any():
        return Unavailable(NO_JOB_WAITS)
    figure = new_figure("Input wait over the run", mode, "Time since the first step (s)", "Wait per step (ms)")
    time, wait = (start - start[:1].sum())[known], wait[known]
    starts = group_starts(len(wait), MAX_POINTS)
    longest = int(np.argmax(wait)) if len(wait) else 0
    when = f"{format_duration(time[longest] * NS_PER_S)} into the run" if longest else "at the start of the run"
    say(
        figure,
        f"A typical step waits {format_duration(np.median(wait) * NS_PER_MS)}; the longest wait is "
        f"{format_duration(wait[longest] * NS_PER_MS)}, {when}."
        if wait.any()
        else "No step waited for input.",
    )
    hover = "%{x:.3g} s: %{y:.3g} ms<extra></extra>"
    shown: dict[str, Any] = {"name": "wait per step", "hovertemplate": hover, "showlegend": False}
    spacing = np.diff(time[starts])
    parts = np.cumsum(np.insert(spacing > FAR_APART * np.median(spacing), 0, False)) if len(spacing) else None
    add_medians(figure, time[starts], wait, starts, color("input_wait", mode), mode, "steps", parts, **shown)
    return figure


def stall_over_windows(steps: Steps, mode: Mode = "light") -> go.Figure:
    """Draw the share of each profiled step that was input wait, over the time of the capture."""
    figure = new_figure("Input wait over the capture", mode, "Time (s)", "Wait (% of step)")
    start = column(steps.table, "start_ns", NS_PER_S)
    length = column(steps.table, "end_ns", NS_PER_MS) - column(steps.table, "start_ns", NS_PER_MS)
    percent = 100 * column(steps.table, "wait_ns", NS_PER_MS) / np.maximum(length, 1e-9)
    starts = group_starts(len(percent), MAX_POINTS)
    say(
        figure,
        f"Waiting fills {format_percent(np.median(percent))} of a typical step, {format_percent(percent.max())} of the worst.",
    )
    if len(starts) < len(percent):
        add_note(figure, f"Each point is the mean of {group_size(starts)} neighboring steps.")
    figure.add_scatter(
        x=start[starts],
        y=group_mean(percent, starts),
        ids=event_places("step", steps.table.column("start_ns").to_numpy()[starts]),
        mode="markers",
        marker={"color": color("input_wait", mode), "size": 6},
        hovertemplate="%{x:.3g} s: %{y:.3g} % of the step<extra></extra>",
        showlegend=False,
    )
    figure.update_yaxes(range=[0, 100])
    return figure


def wait_distribution(stalls: InputStalls, mode: Mode = "light") -> go.Figure:
    """Draw how many waits were how long, on a logarithmic axis; few waits as dots."""
    figure = new_figure("How long the waits are", mode, "Length of one wait (ms, logarithmic)", "Number of waits")
    length = column(stalls.table, "end_ns", NS_PER_MS) - column(stalls.table, "start_ns", NS_PER_MS)
    positive = length[length > 0]
    if len(positive) < len(length):
        add_note(figure, f"{format_count(len(length) - len(positive))} waits of no length are left out.")
    if not len(positive):
        say(figure, "No wait had a length.")
        return figure
    median, p95 = (float(np.percentile(positive, percent)) for percent in (50, 95))
    say(
        figure,
        f"Half of the waits are longer than {format_duration(median * NS_PER_MS)}, "
        f"one in twenty longer than {format_duration(p95 * NS_PER_MS)}.",
    )
    edges = _log_edges(positive)
    ticks = _ticks(edges[0], edges[-1])
    figure.update_xaxes(tickvals=np.log10(ticks), ticktext=[f"{tick:g}" for tick in ticks])
    if len(positive) < FEW:
        _add_each(figure, positive, mode)
        return figure
    counts, _ = np.histogram(positive, edges)
    figure.add_bar(
        x=np.log10(np.sqrt(edges[:-1] * edges[1:])),
        y=counts,
        width=np.diff(np.log10(edges)),
        customdata=np.stack([edges[:-1], edges[1:]], axis=1),
        marker={"color": color("input_wait", mode), "line": {"width": 1, "color": THEMES[mode].paper}},
        hovertemplate="%{customdata[0]:.3g} to %{customdata[1]:.3g} ms: %{y} waits<extra></extra>",
        showlegend=False,
    )
    if counts.max() < 8:
        figure.update_yaxes(dtick=1)
    for value, dash in ((median, "solid"), (p95, "dot")):
        figure.add_vline(x=np.log10(value), line={"color": THEMES[mode].muted, "width": 1.5, "dash": dash})
    return figure


def _add_each(figure: go.Figure, lengths: FloatArray, mode: Mode) -> None:
    """Draw one dot per wait, those of about one length above each other."""
    order = np.sort(lengths)
    places = np.round(np.log10(order) * 20)
    heights = [int((places[:index] == place).sum()) + 1 for index, place in enumerate(places)]
    figure.add_scatter(
        x=np.log10(order),
        y=heights,
        mode="markers",
        marker={"color": color("input_wait", mode), "size": 10},
        customdata=order,
        hovertemplate="%{customdata:.3g} ms<extra></extra>",
        showlegend=False,
    )
    figure.update_yaxes(range=[0, max(4, *heights) + 0.5], dtick=1)


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two lengths: powers of ten, and more of them where few decades are shown."""
    if high / low < LEAST_DECADES:
        rough = (high - low) / 5
        power = 10.0 ** np.floor(np.log10(rough))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
        return [step * number for number in range(int(np.ceil(low / step)), int(high / step) + 1)]
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    factors = (1,) if len(decades) > 4 else (1, 2, 5) if len(decades) > 2 else (1, 1.5, 2, 3, 4, 5, 7)
    ticks = [factor * 10.0**decade for decade in decades for factor in factors]
    return [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]


def _log_edges(positive: FloatArray) -> FloatArray:
    low, high = np.log10(positive.min()), np.log10(positive.max())
    if high - low < 0.1:
        low, high = low - 0.05, high + 0.05
    bins = int(np.clip(np.sqrt(len(positive)) * 2, 8, HISTOGRAM_BINS))
    return np.asarray(np.logspace(low - 1e-9, high + 1e-9, bins + 1))
