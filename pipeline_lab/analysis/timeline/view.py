"""Cut a view out of a timeline: single events where they fit on the screen, what fills most of each pixel elsewhere."""

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.causes import Work
from pipeline_lab.analysis.timeline.index import Group, Index
from pipeline_lab.analysis.timeline.lanes import CLASSES, LaneKind
from pipeline_lab.analysis.timeline.writing import Lane

MAX_PIXELS = 4000
MAX_ROWS = 150
SINGLE_EVENTS = 160
"""A row shows single events up to this many, beyond that the fill of each pixel."""
LEVELS = 7
"""A pixel's fill has this many steps: one byte holds class and level."""
SHOWN_THREADS = 12
"""Threads per host that are shown at first; a run of many hosts shows fewer of each."""
MOSTLY_RECORDED = 0.5
"""From this share of recorded time on, a timeline opens with all of it in view."""
_ROLES = ("stream", "training", "waits", "tf.data", "other")


@dataclass(frozen=True)
class View:
    """What a screen shows.

    Attributes:
        start_ns, end_ns: The stretch of time.
        pixels: Width of the screen.
        rows: Lane and layer of each row.
        marked: Numbers of the names whose events are marked.
    """

    start_ns: int
    end_ns: int
    pixels: int
    rows: tuple[tuple[int, int], ...]
    marked: tuple[int, ...] = ()


def profile_windows(index: Index) -> list[tuple[int, int]]:
    """Return start and end of each profile window, ns, in their order; none of a log that does not tell them."""
    return [
        (int(start_ns), int(start_ns + duration_ns))
        for lane in index.lanes_of(LaneKind.WINDOWS)
        for group in index.at(lane, 0)
        if CLASSES[group.event_class] == Work.WINDOW
        for start_ns, duration_ns in zip(group.start_ns, group.duration_ns(0, len(group.start_ns)), strict=True)
    ]


def opening_stretch(index: Index) -> tuple[int, int]:
    """Return the stretch of time to show first, ns: all of it, or the first window where most of it was not recorded."""
    windows = profile_windows(index)
    recorded_ns = sum(end_ns - start_ns for start_ns, end_ns in windows)
    if not windows or recorded_ns >= MOSTLY_RECORDED * (index.end_ns - index.start_ns):
        return index.start_ns, max(index.end_ns, index.start_ns + 1)
    return windows[0]


def arrange_lanes(index: Index) -> list[dict[str, Any]]:
    """Return the lanes from top to bottom, host by host, each with whether it is shown at first.

    Shown are all lanes of the diagnosis, the streams, the training thread, and the busiest of the threads that wait
    for input, that are tf.data's, and of the others.
    """
    hosts = list(dict.fromkeys(lane.host for lane in index.lanes))
    kinds = list(LaneKind)

    def order(number: int) -> tuple[int, int, int, int]:
        lane = index.lanes[number]
        host = -1 if lane.kind is LaneKind.WINDOWS else hosts.index(lane.host)
        return host, kinds.index(lane.kind), _ROLES.index(_role(lane)), -lane.busy_ns

    seen: dict[str, int] = {}
    arranged = []
    limit = max(3, SHOWN_THREADS // max(1, len(hosts)))
    for number in sorted(range(len(index.lanes)), key=order):
        lane = index.lanes[number]
        if lane.kind is LaneKind.THREAD:
            seen[lane.host] = seen.get(lane.host, 0) + 1
        arranged.append(
            {
                "lane": number,
                "kind": lane.kind.value,
                "role": _role(lane),
                "host": lane.host,
                "label": lane.label,
                "layers": lane.layers,
                "events": lane.events,
                "shown": lane.kind is not LaneKind.THREAD or (seen[lane.host] <= limit and lane.busy_ns > 0),
            }
        )
    return arranged


def cut(index: Index, view: View) -> dict[str, Any]:
    """Return a view as plain values.

    Returns:
        ``rows``: for each row either ``events``, flat as (start, duration, name, class) since the view's start, or
        ``cells``, base64 of one byte per pixel: ``class * 8 + level``, level 0 for nothing there. ``marks``: pixels
        with marked events. ``names``: labels of the single events.
    """
    edges = np.linspace(view.start_ns, view.end_ns, view.pixels + 1).astype(np.int64)
    wanted = np.zeros(max(1, len(index.names)), np.bool_)
    wanted[list(view.marked)] = True
    rows, used = [], set[int]()
    for lane, layer in view.rows:
        groups = index.at(lane, layer)
        spans = [(group, *group.rows(view.start_ns, view.end_ns)) for group in groups]
        row: dict[str, Any] = {"lane": lane, "layer": layer}
        if sum(last - first for _, first, last in spans) <= SINGLE_EVENTS:
            row["events"] = _single(spans, view.start_ns)
            used.update(row["events"][2::4])
        else:
            row["cells"] = _fill(groups, edges)
        if view.marked:
            row["marks"] = _marks(spans, wanted, view)
        rows.append(row)
    return {"rows": rows, "names": {number: index.labels[number] for number in used}}


def _role(lane: Lane) -> str:
    if lane.kind is not LaneKind.THREAD:
        return "stream"
    return "waits" if lane.waits and lane.role == "other" else lane.role


def _single(spans: Iterable[tuple[Group, int, int]], origin_ns: int) -> list[int]:
    rows: list[int] = []
    for group, first, last in spans:
        columns = (
            group.start_ns[first:last] - origin_ns,
            group.duration_ns(first, last),
            group.name[first:last],
            np.full(last - first, group.event_class),
        )
        rows += np.stack(columns, axis=1).astype(np.int64).ravel().tolist()
    return rows


def _fill(groups: tuple[Group, ...], edges: IntArray) -> str:
    cover = np.stack([np.diff(group.covered_until(edges)) for group in groups])
    classes = np.array([group.event_class for group in groups])
    width = np.maximum(1, np.diff(edges))
    level = np.ceil(np.clip(cover.sum(axis=0) / width, 0, 1) * LEVELS)
    cells = np.where(level > 0, classes[cover.argmax(axis=0)] * (LEVELS + 1) + level, 0)
    return base64.b64encode(cells.astype(np.uint8).tobytes()).decode()


def _marks(spans: Iterable[tuple[Group, int, int]], wanted: NDArray[np.bool_], view: View) -> list[int]:
    found = [np.empty(0, np.int64)]
    scale = view.pixels / max(1, view.end_ns - view.start_ns)
    for group, first, last in spans:
        rows = first + np.flatnonzero(wanted[group.name[first:last]])
        pixel = ((group.start_ns[rows] - view.start_ns) * scale).astype(np.int64)
        found.append(np.unique(np.clip(pixel, 0, view.pixels - 1)))
    return [int(pixel) for pixel in np.unique(np.concatenate(found))]
