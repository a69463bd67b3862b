"""Runs of a comparison on one axis: their steps to scale above each other; step time, wait, loss and memory over the runs."""

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import pyarrow.compute as pc

from pipeline_lab.analysis.causes import StepPart
from pipeline_lab.analysis.steps.job_steps import NO_LOSS, JobSteps
from pipeline_lab.analysis.verdict.judged_parts import judged_parts_ns
from pipeline_lab.comparison.recorded_runs import Comparison, RecordedRun
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.aggregate import FloatArray, column, group_percentile, group_size, group_starts
from pipeline_lab.figures.anatomy_chart import (
    LEAST_SEEN,
    add_windows,
    make_room_for_legend,
    shortest_ns,
    window_with_steps,
)
from pipeline_lab.figures.theme import THEMES, Mode, add_note, color, dots_or_line, new_figure, say
from pipeline_lab.units import NS_PER_MS, NS_PER_S, duration_unit, format_bytes, format_duration, format_duration_in

LABEL_LENGTH = 20
MOST_WINDOWS = 6
"""Runs whose windows are drawn below their steps."""
RUN_POINTS = 300
MB = 1e6
STRIP_HEIGHT = 58
NAMED_SHARE = 0.08
"""The part of the longest strip that has room for a number."""
CANDIDATES = ("busy", "input_wait", "host_operation", "compile", "dispatch", "python", "checkpoint")
"""Colors of candidates; more than these begin again."""


def run_labels(runs: Sequence[RecordedRun]) -> list[str]:
    """Return a short, distinct label for each run that no chart takes for markup."""
    return short_labels([run.name for run in runs])


def short_labels(names: Sequence[str]) -> list[str]:
    """Return names cut to a chart's width, distinct, and escaped."""
    short = [name if len(name) <= LABEL_LENGTH else f"{name[: LABEL_LENGTH - 1]}…" for name in names]
    if len(set(short)) < len(short):
        short = [f"{number}: {name}" for number, name in enumerate(short)]
    return [html.escape(" ".join(name.split()), quote=False) or "–" for name in short]


def anatomy_by_run(comparison: Comparison, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw what a step of each run consists of on average: one strip per run, all at one scale."""
    found = [judged_parts_ns(run.diagnosis) for run in comparison.runs]
    known = [parts for parts in found if not isinstance(parts, Unavailable)]
    if not known:
        return next(parts for parts in found if isinstance(parts, Unavailable))
    labels = run_labels(comparison.runs)
    longest_ns = max(sum(parts.values()) for parts in known)
    unit = duration_unit(longest_ns)
    figure = new_figure(
        "What a step consists of", mode, f"Time per step ({unit[1]})", "", height=130 + STRIP_HEIGHT * len(labels)
    )
    for part in StepPart:
        lengths = [np.nan if isinstance(parts, Unavailable) else parts.get(part, 0.0) for parts in found]
        if not np.nan_to_num(lengths).any():
            continue
        figure.add_bar(
            x=[length / unit[0] for length in lengths],
            y=labels,
            orientation="h",
            name=part.label,
            showlegend=bool(np.nanmax(lengths) >= LEAST_SEEN * longest_ns),
            marker={"color": color(part.category, mode), "line": {"width": 1, "color": THEMES[mode].paper}},
            text=[
                f"<b>{format_duration_in(length, unit)}</b>" if length >= NAMED_SHARE * longest_ns else ""
                for length in lengths
            ],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            hovertemplate=f"%{{y}}: {part.label} %{{x:.3g}} {unit[1]}<extra></extra>",
        )
    figure.update_layout(barmode="stack", bargap=0.35, dragmode=False, uniformtext={"minsize": 10, "mode": "hide"})
    figure.update_layout(legend_traceorder="normal")
    figure.update_xaxes(range=[0, longest_ns / unit[0]], fixedrange=True)
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    windows = {
        label: window
        for label, run in zip(labels, comparison.runs, strict=True)
        if (window := window_with_steps(run.diagnosis)) is not None
    }
    if 2 <= len(windows) <= MOST_WINDOWS:
        seen = {
            part.label for part in StepPart if any(parts.get(part, 0.0) >= LEAST_SEEN * longest_ns for parts in known)
        }
        title = f"First {format_duration(shortest_ns(windows))} of a recorded window"
        add_windows(figure, windows, title, STRIP_HEIGHT * len(labels), seen, mode)
    make_room_for_legend(figure, columns=1)  # beside the names of the runs
    say(figure, _what_changed(labels, found))
    if len(known) < len(found):
        add_note(figure, f"Not measured in {len(found) - len(known)} of {len(found)} runs.")
    return figure


def _what_changed(labels: list[str], found: list[dict[StepPart, float] | Unavailable]) -> str:
    """Say which part differs most between the baseline and the run whose step differs most from its."""
    baseline, *others = found
    known = [(label, parts) for label, parts in zip(labels[1:], others, strict=True) if isinstance(parts, dict)]
    if isinstance(baseline, Unavailable) or not known:
        return "Baseline and candidates cannot be compared: the steps of one side were not recorded."
    whole = sum(baseline.values())
    label, parts = max(known, key=lambda one: abs(sum(one[1].values()) - whole))
    part = max(StepPart, key=lambda one: abs(parts.get(one, 0.0) - baseline.get(one, 0.0)))
    return (
        f"{part.label.capitalize()} differs most: {format_duration(baseline.get(part, 0.0))} of a step in {labels[0]}, "
        f"{format_duration(parts.get(part, 0.0))} in {label}."
    )


def step_time_by_run(comparison: Comparison, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw every run's step time over its steps, on one axis."""
    drawn = _overlay(comparison, "step_ns", NS_PER_MS, ("Step time over the runs", "Step time (ms)"), mode)
    if not isinstance(drawn, Unavailable):
        typical = [
            (label, run.diagnosis.job_steps.median_ns)
            for label, run in zip(run_labels(comparison.runs), comparison.runs, strict=True)
            if isinstance(run.diagnosis.job_steps, JobSteps)
        ]
        (fast, shortest), (slow, longest) = (pick(typical, key=lambda one: one[1]) for pick in (min, max))
        between = f"{format_duration(shortest)} in {fast} to {format_duration(longest)} in {slow}"
        say(drawn, f"A typical step takes {between if fast != slow else format_duration(shortest)}.")
    return drawn


def wait_by_run(comparison: Comparison, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw how long every run's steps waited for their batch, over its steps, on one axis."""
    drawn = _overlay(comparison, "wait_ns", NS_PER_MS, ("Input wait over the runs", "Wait per step (ms)"), mode)
    if not isinstance(drawn, Unavailable):
        typical = {line.name: float(np.nanmedian(line.y)) for line in drawn.data}
        least, most = (pick(typical, key=typical.__getitem__) for pick in (min, max))
        say(drawn, f"A typical step waits {typical[least]:.3g} ms in {least}, {typical[most]:.3g} ms in {most}.")
    return drawn


def accuracy_by_run(comparison: Comparison, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw every run's accuracy over its steps, on one axis."""
    drawn = _overlay(comparison, "accuracy", 0.01, ("Accuracy over the runs", "Accuracy (%)"), mode)
    if not isinstance(drawn, Unavailable):
        lasts = {line.name: float(np.nanmean(line.y[-max(1, len(line.y) // 10) :])) for line in drawn.data}
        best = max(lasts, key=lasts.__getitem__)
        least = min(lasts.values())
        say(drawn, f"The highest accuracy at the end: {lasts[best]:.3g} % in {best}; the lowest {least:.3g} %.")
    return drawn


def memory_over_time_by_run(comparison: Comparison, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw the resident memory of every run's job over its time, on one axis."""
    noted = [
        (number, label, run.diagnosis.memory)
        for number, (label, run) in enumerate(zip(run_labels(comparison.runs), comparison.runs, strict=True))
        if not isinstance(run.diagnosis.memory, Unavailable) and run.diagnosis.memory.table.num_rows
    ]
    if not noted:
        return Unavailable("No run noted its memory; launch runs with the lab.")
    figure = new_figure("Memory over the runs", mode, "Time since the start of the job (s)", "Resident size (MB)")
    for number, label, memory in reversed(noted):  # the baseline is on top
        time_s = column(memory.table, "time_ns", NS_PER_S)
        starts = group_starts(len(time_s), RUN_POINTS)
        size = group_percentile(column(memory.table, "rss_bytes", MB), starts, 100)
        _add_line(figure, number, label, (time_s - time_s[0])[starts], size, mode, "%{x:.3g} s: %{y:,.0f} MB")
    peaks = {label: memory.process_peak_bytes for _, label, memory in noted}
    most, least = (pick(peaks, key=peaks.__getitem__) for pick in (max, min))
    say(figure, f"Memory peaks at {format_bytes(peaks[most])} in {most}, {format_bytes(peaks[least])} in {least}.")
    return figure


def loss_by_run(comparison: Comparison, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw every run's loss over its steps, on one axis."""
    drawn = _overlay(comparison, "loss", 1.0, ("Loss over the runs", "Loss"), mode)
    if not isinstance(drawn, Unavailable):
        lasts = {line.name: float(np.nanmean(line.y[-max(1, len(line.y) // 10) :])) for line in drawn.data}
        best = min(lasts, key=lasts.__getitem__)
        say(drawn, f"The lowest loss at the end: {lasts[best]:.3g} in {best}; the highest {max(lasts.values()):.3g}.")
    return drawn


def _overlay(
    comparison: Comparison, name: str, unit: float, titles: tuple[str, str], mode: Mode
) -> go.Figure | Unavailable:
    lines = [
        (number, label, run.diagnosis.job_steps)
        for number, (label, run) in enumerate(zip(run_labels(comparison.runs), comparison.runs, strict=True))
        if not isinstance(run.diagnosis.job_steps, Unavailable)
    ]
    lines, noted = [line for line in lines if not np.isnan(column(line[2].table, name)).all()], bool(lines)
    if not lines and noted:
        return NO_LOSS if name == "loss" else Unavailable(f"The runs did not record their {name.removesuffix('_ns')}.")
    if not lines:
        return Unavailable("No run noted its steps; launch runs with the lab to see them over time.")
    figure = new_figure(titles[0], mode, "Step", titles[1])
    joined, heights = 1, []
    for number, label, job in reversed(lines):  # the baseline is on top
        table = job.table.filter(pc.invert(job.table.column("warmup")))
        starts = group_starts(table.num_rows, RUN_POINTS)
        values = group_percentile(column(table, name, unit), starts, 50)
        joined = max(joined, group_size(starts))
        heights.append(values[np.isfinite(values)])
        _add_line(figure, number, label, column(table, "step")[starts], values, mode, "step %{x}: %{y:.3g}")
    ceiling = max((float(np.percentile(values, 99)) for values in heights if len(values)), default=0.0)
    figure.update_yaxes(range=[0, 1.15 * ceiling or 1])
    if joined > 1:
        add_note(figure, f"Lines: median of up to {joined} neighboring steps.")
    return figure


def _add_line(figure: go.Figure, number: int, label: str, x: FloatArray, y: FloatArray, mode: Mode, words: str) -> None:
    """Draw one run over its steps or its time; few values as dots."""
    shade = color("unknown", mode) if not number else color(CANDIDATES[(number - 1) % len(CANDIDATES)], mode)
    is_named = number or label == "baseline"
    figure.add_scatter(
        x=x,
        y=y,
        mode=dots_or_line(len(y)),
        name=label if is_named else f"{label} (baseline)",
        legendrank=number,
        line={"color": shade, "width": 1.8 if not number else 1.4},
        marker={"color": shade, "size": 8},
        hovertemplate=f"%{{fullData.name}}, {words}<extra></extra>",
        showlegend=True,
    )
