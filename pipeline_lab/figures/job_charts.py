"""What the job noted over its whole course: the time of its steps, loss and accuracy, and its memory."""

import html
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from pipeline_lab.analysis.machine.allocators import Allocators
from pipeline_lab.analysis.machine.process_memory import Memory
from pipeline_lab.analysis.machine.profiler_cost import ProfilerCost
from pipeline_lab.analysis.steps.job_steps import NO_LOSS, JobSteps
from pipeline_lab.analysis.steps.outlier_steps import OutlierSteps
from pipeline_lab.analysis.steps.step_phases import PhaseTimes, StepPhases
from pipeline_lab.analysis.verdict.findings import PART_NAMES
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.aggregate import FloatArray, column, group_mean, group_percentile, group_size, group_starts
from pipeline_lab.figures.panels import Panel, draw_panels
from pipeline_lab.figures.theme import (
    THEMES,
    Mode,
    add_key,
    add_medians,
    add_note,
    color,
    dots_or_line,
    new_figure,
    say,
    shade,
)
from pipeline_lab.units import NS_PER_MS, NS_PER_S, format_bytes, format_count, format_duration

MAX_POINTS = 800
MAX_MARKS = 200
HEADROOM = 3.0
"""Of the axis over the step that one in twenty exceeds, where some steps take more than twice as long as that."""
NO_OUTLIERS = Unavailable("Outliers were not looked for.")


def step_time(job: JobSteps, mode: Mode = "light", outliers: OutlierSteps | Unavailable = NO_OUTLIERS) -> go.Figure:
    """Draw the time of every step; the warm-up is shaded, profiled steps and outliers are marked."""
    figure = new_figure("Step time over the run", mode, "Step", "Step time (ms)")
    step, time_ms = column(job.table, "step"), column(job.table, "step_ns", NS_PER_MS)
    starts = group_starts(len(step), MAX_POINTS)
    measured = time_ms[~_is_warmup(job)]
    typical, slow = (np.percentile(measured if len(measured) else time_ms, percent) for percent in (50, 95))
    say(
        figure,
        f"A typical step takes {format_duration(typical * NS_PER_MS)}; one in twenty takes more than "
        f"{format_duration(slow * NS_PER_MS)}.",
    )
    shown: dict[str, Any] = {"name": "step time", "hovertemplate": "step %{x}: %{y:.3g} ms<extra></extra>"}
    add_medians(figure, step[starts], time_ms, starts, color("busy", mode), mode, "steps", **shown)
    _mark_profiled(figure, job, step, time_ms, mode)
    top_ms = _bound_axis(figure, time_ms, HEADROOM * slow)
    if not isinstance(outliers, Unavailable):
        _mark_outliers(figure, outliers, top_ms, mode)
    _mark_warmup(figure, job, step, mode)
    return figure


def _bound_axis(figure: go.Figure, time_ms: FloatArray, top_ms: float) -> float:
    """End the axis where most steps are still told apart, if some take far longer, and say how many; return its end, ms."""
    longest = float(time_ms.max())
    if longest <= 2 * top_ms:
        return longest
    beyond = int((time_ms > top_ms).sum())
    steps, reach = ("One step", "reaches") if beyond == 1 else (f"{format_count(beyond)} steps", "reach")
    figure.update_yaxes(range=[0, top_ms])
    add_note(figure, f"{steps}, up to {format_duration(longest * NS_PER_MS)}, {reach} beyond the chart.")
    return top_ms


def phases(found: StepPhases, mode: Mode = "light") -> go.Figure:
    """Draw the mean step of each phase of the job, divided into waiting for input and the rest."""
    figure = new_figure("Mean step by phase", mode, "Mean step (ms)", "", height=270)
    slowest, fastest = (pick(found.phases, key=lambda one: one.total_ns / one.steps) for pick in (max, min))
    if slowest is fastest:
        say(figure, f"All steps are of one phase, {slowest.phase.value}: {_mean_step(slowest)} each.")
    else:
        say(
            figure,
            f"The mean step takes {_mean_step(slowest)} in {slowest.phase.value}, {_mean_step(fastest)} in {fastest.phase.value}.",
        )
    names = [
        f"{one.phase.value}<br>{format_count(one.steps)} step{'' if one.steps == 1 else 's'}" for one in found.phases
    ]
    wait = [None if one.wait_ns is None else one.wait_ns / one.steps / NS_PER_MS for one in found.phases]
    rest = [one.total_ns / one.steps / NS_PER_MS - (known or 0) for one, known in zip(found.phases, wait, strict=True)]
    parts = [("input wait", wait, "input_wait"), ("the rest of the step", rest, "busy")]
    if all(known is None for known in wait):
        parts = [("the step, whose wait for input is not known", rest, "busy")]
    for name, value, category in parts:
        figure.add_bar(
            y=names,
            x=value,
            orientation="h",
            name=name,
            marker={"color": color(category, mode)},
            hovertemplate="%{y}: %{x:.3g} ms " + name + "<extra></extra>",
        )
    figure.update_layout(barmode="stack", dragmode=False)
    figure.update_yaxes(autorange="reversed", showgrid=False, type="category")
    return figure


def _mean_step(one: PhaseTimes) -> str:
    return format_duration(one.total_ns / one.steps)


def learning(job: JobSteps, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw loss, and below it accuracy where the workload has one."""
    step, loss, accuracy = (column(job.table, name) for name in ("step", "loss", "accuracy"))
    if np.isnan(loss).all():
        return NO_LOSS
    has_accuracy = not np.isnan(accuracy).all()
    figure = new_figure("Loss and accuracy" if has_accuracy else "Loss", mode, "Step", "Loss")
    starts = group_starts(len(step), MAX_POINTS)
    known = loss[~np.isnan(loss)]
    first, last = (float(part.mean()) for part in (known[: -(-len(known) // 10)], known[-len(known) // 10 :]))
    better = f"; accuracy ends at {100 * accuracy[~np.isnan(accuracy)][-1]:.3g} %" if has_accuracy else ""
    say(figure, f"The loss goes from {first:.3g} to {last:.3g}{better}.")
    if group_size(starts) > 1:
        add_note(figure, f"Each point is the mean of {group_size(starts)} neighboring steps.")
    _add_line(figure, step[starts], group_mean(loss, starts), "loss", "busy", mode, axis="y")
    if has_accuracy:
        _add_line(figure, step[starts], 100 * group_mean(accuracy, starts), "accuracy", "dispatch", mode, axis="y2")
        figure.update_layout(
            height=440,
            yaxis={"domain": [0.56, 1]},
            yaxis2={"domain": [0, 0.44], "title": {"text": "Accuracy (%)"}, "anchor": "x", "range": [0, 100]},
            xaxis={"anchor": "y2"},
        )
    return figure


def _add_line(
    figure: go.Figure, x: FloatArray, y: FloatArray, name: str, category: str, mode: Mode, *, axis: str
) -> None:
    figure.add_scatter(
        x=x,
        y=y,
        yaxis=axis,
        mode=dots_or_line(len(x)),
        line={"color": color(category, mode), "width": 1.6},
        marker={"color": color(category, mode), "size": 7},
        hovertemplate="step %{x}: " + name + " %{y:.3g}<extra></extra>",
        showlegend=False,
    )


def _mark_profiled(figure: go.Figure, job: JobSteps, step: FloatArray, time_ms: FloatArray, mode: Mode) -> None:
    rows = np.flatnonzero(job.table.column("profiled").to_numpy(zero_copy_only=False))
    rows = rows[group_starts(len(rows), MAX_MARKS)]
    if not len(rows):
        return
    figure.add_scatter(
        x=step[rows],
        y=time_ms[rows],
        mode="markers",
        name="profiled",
        marker={"color": color("input_wait", mode), "size": 5},
        hovertemplate="profiled step %{x}: %{y:.3g} ms<extra></extra>",
    )


def _mark_outliers(figure: go.Figure, outliers: OutlierSteps, top_ms: float, mode: Mode) -> None:
    """Mark outliers, those beyond the end of the axis at its end."""
    rows = outliers.table.to_pylist()
    rows.sort(key=lambda row: -int(row["length_ns"]))
    if len(rows) > MAX_MARKS:
        add_note(figure, f"The {MAX_MARKS} longest of {len(rows)} outliers are marked.")
    rows = rows[:MAX_MARKS]
    if not rows:
        return
    figure.add_scatter(
        x=[row["step"] for row in rows],
        y=[min(top_ms, row["length_ns"] / NS_PER_MS) for row in rows],
        mode="markers",
        name="outlier",
        cliponaxis=False,
        customdata=[(row["length_ns"] / NS_PER_MS, PART_NAMES[row["cause"]]) for row in rows],
        marker={"symbol": "triangle-down", "size": 9, "color": THEMES[mode].ink},
        hovertemplate="step %{x}: %{customdata[0]:.3g} ms<br>%{customdata[1]}<extra></extra>",
    )


def _is_warmup(job: JobSteps) -> NDArray[np.bool_]:
    return np.asarray(job.table.column("warmup").to_numpy(zero_copy_only=False), np.bool_)


def _mark_warmup(figure: go.Figure, job: JobSteps, step: FloatArray, mode: Mode) -> None:
    warm = _is_warmup(job)
    if not warm.any():
        return
    shade(figure, mode, [(step[warm].min() - 0.5, step[warm].max() + 0.5)])
    add_key(figure, "warm-up", mode)


MEMORY_POINTS = 1000
MAX_FLUSHES = 60
MB = 1e6


def memory_over_time(memory: Memory, cost: ProfilerCost | Unavailable, mode: Mode = "light") -> go.Figure:
    """Draw the process's resident size; gray bands are profile windows, marks the end of their flushes."""
    figure = new_figure("Memory of the job", mode, "Time (s)", "Resident size (MB)")
    time_s = column(memory.table, "time_ns", NS_PER_S)
    size = column(memory.table, "rss_bytes", MB)
    starts = group_starts(len(size), MEMORY_POINTS)
    grown = float(np.mean(size[-len(size) // 10 :]) - np.mean(size[: -(-len(size) // 10)])) * MB if len(size) else 0.0
    more = f"ends {format_bytes(abs(grown))} {'above' if grown > 0 else 'below'} where it began"
    say(figure, f"Memory peaks at {format_bytes(memory.process_peak_bytes)} and {more}.")
    if group_size(starts) > 1:
        add_note(figure, f"Each point is the highest of {group_size(starts)}.")
    figure.add_scatter(
        x=time_s[starts],
        y=group_percentile(size, starts, 100),
        mode="lines",
        name="resident size",
        line={"color": color("busy", mode), "width": 2},
        hovertemplate="%{x:.3g} s: %{y:,.0f} MB<extra></extra>",
    )
    if not isinstance(cost, Unavailable) and cost.windows.num_rows:
        _mark_windows(figure, cost, time_s, size, mode)
    return figure


def memory_by_allocator(allocators: Allocators, mode: Mode = "light") -> go.Figure:
    """Draw what each allocator had handed out over the profile windows; the dashed line is its peak."""
    table = allocators.table
    names, hosts = table.column("allocator").to_pylist(), table.column("host").to_pylist()
    several = len({one.host for one in allocators.allocators}) > 1
    rows = np.array([f"{host} {name}" for host, name in zip(hosts, names, strict=True)], np.object_)
    time_s, used = column(table, "start_ns", NS_PER_S), column(table, "used_bytes", MB)
    panels = []
    for one in allocators.allocators:
        mine = rows == f"{one.host} {one.name}"
        label = f"{one.host} {one.name}" if several else one.name
        peak = np.full(int(mine.sum()), one.peak_bytes / MB)
        panels.append(Panel(f"{label} (MB)", time_s[mine], used[mine], peak, column(table, "window")[mine]))
    figure = draw_panels("Memory by allocator", panels, mode)
    largest = allocators.allocators[0]
    say(figure, f"{html.escape(largest.name)} had handed out {format_bytes(largest.peak_bytes)} at most.")
    add_note(figure, "Inside the profile windows; dashed: the peak since the job began.")
    return figure


def _mark_windows(figure: go.Figure, cost: ProfilerCost, time_s: np.ndarray, size: np.ndarray, mode: Mode) -> None:
    start, stop, flushed = (column(cost.windows, name, NS_PER_S) for name in ("start_ns", "stop_ns", "flushed_ns"))
    shade(figure, mode, list(zip(start, stop, strict=True)))
    shown = group_starts(len(flushed), MAX_FLUSHES)
    if group_size(shown) > 1:
        add_note(figure, f"One flush of {group_size(shown)} is marked.")
    flushed = flushed[shown]
    add_key(figure, "profile window", mode)
    height = np.interp(flushed, time_s, size) if len(size) else np.zeros(len(flushed))
    figure.add_scatter(
        x=flushed,
        y=height,
        mode="markers",
        name="window flushed to disk",
        marker={"symbol": "diamond", "size": 9, "color": color("input_wait", mode)},
        customdata=column(cost.windows, "size_bytes", MB)[shown],
        hovertemplate="flushed at %{x:.3g} s: %{customdata:.3g} MB on disk<extra></extra>",
    )
