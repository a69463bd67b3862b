"""The job's memory over time, with the profile windows and their flushes."""

import numpy as np
import plotly.graph_objects as go

from pipeline_lab.analysis.allocators import Allocators
from pipeline_lab.analysis.memory import Memory
from pipeline_lab.analysis.profiler_cost import ProfilerCost
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.aggregate import column, group_percentile, group_size, group_starts
from pipeline_lab.figures.panels import Panel, draw_panels
from pipeline_lab.figures.theme import Mode, add_key, add_note, colour, new_figure, shade
from pipeline_lab.units import NS_PER_S, format_bytes

MAX_POINTS = 1000
MAX_MARKS = 60
MB = 1e6


def memory_over_time(memory: Memory, cost: ProfilerCost | Unavailable, mode: Mode = "light") -> go.Figure:
    """Draw the process's resident size; grey bands are profile windows, marks the end of their flushes."""
    figure = new_figure("Memory of the job", mode, "Time (s)", "Resident size (MB)")
    time_s = column(memory.table, "time_ns", NS_PER_S)
    size = column(memory.table, "rss_bytes", MB)
    starts = group_starts(len(size), MAX_POINTS)
    add_note(figure, f"Peak {format_bytes(memory.process_peak_bytes)}.")
    if group_size(starts) > 1:
        add_note(figure, f"Each point is the highest of {group_size(starts)}.")
    figure.add_scatter(
        x=time_s[starts],
        y=group_percentile(size, starts, 100),
        mode="lines",
        name="resident size",
        line={"color": colour("busy", mode), "width": 2},
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
        panels.append(Panel(f"{label} (MB)", time_s[mine], used[mine], np.full(int(mine.sum()), one.peak_bytes / MB)))
    figure = draw_panels("Memory by allocator", panels, mode)
    add_note(figure, "Inside the profile windows; dashed: the peak since the job began.")
    return figure


def _mark_windows(figure: go.Figure, cost: ProfilerCost, time_s: np.ndarray, size: np.ndarray, mode: Mode) -> None:
    start, stop, flushed = (column(cost.windows, name, NS_PER_S) for name in ("start_ns", "stop_ns", "flushed_ns"))
    shade(figure, mode, list(zip(start, stop, strict=True)))
    shown = group_starts(len(flushed), MAX_MARKS)
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
        marker={"symbol": "diamond", "size": 9, "color": colour("input_wait", mode)},
        customdata=column(cost.windows, "size_bytes", MB)[shown],
        hovertemplate="flushed at %{x:.3g} s: %{customdata:.3g} MB on disk<extra></extra>",
    )
