"""Cut a view out of a timeline: single events where they fit on the screen, what fills most of each pixel elsewhere."""

import base64
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.causes import Work
from pipeline_lab.analysis.timeline.index import Group, Index
from pipeline_lab.analysis.timeline.lanes import CLASSES, LaneKind
from pipeline_lab.analysis.timeline.shown_axis import TO_SCALE, ShownAxis
from pipeline_lab.data_classes import dataclass

MAX_PIXELS = 4000
MAX_ROWS = 150
MAX_BYTES = 300_000
"""A view is no larger than this."""
CELLS = 90_000
"""Pixels of all rows together; of more rows, several screen pixels share one."""
SINGLE_EVENTS = 160
"""A row shows single events up to this many, beyond that the fill of each pixel."""
ALL_EVENTS = 2_000
"""Single events of all rows together; the rows with the fewest events come first."""
LABEL = 36
"""Bytes of an event's name that fit its bar; the selection shows all of it."""
LEVELS = 7
"""A pixel's fill has this many steps: one byte holds class and level."""
STEP_PIXELS = 44
"""A step number takes this much of the axis."""


@dataclass(frozen=True)
class View:
    """What a screen shows.

    Attributes:
        start_ns, end_ns: The stretch of time.
        pixels: Width of the screen.
        rows: Lane and layer of each row.
        marked: Numbers of the names whose events are marked.
        axis: Where moments are drawn.
    """

    start_ns: int
    end_ns: int
    pixels: int
    rows: tuple[tuple[int, int], ...]
    marked: tuple[int, ...] = ()
    axis: ShownAxis = TO_SCALE

    @cached_property
    def drawn(self) -> tuple[float, float]:
        """Where the view starts and ends on the drawn axis."""
        start, end = self.axis.drawn((self.start_ns, self.end_ns))
        return float(start), float(end)

    def edges(self, pixels: int) -> IntArray:
        """Return the moments between pixels, shape (pixels + 1,)."""
        edges = self.axis.times(np.linspace(*self.drawn, pixels + 1))
        edges[0], edges[-1] = self.start_ns, self.end_ns
        return edges


def profile_windows(index: Index) -> list[tuple[int, int]]:
    """Return start and end of each profile window, ns, in their order; none of a log that does not tell them."""
    return [
        (int(start_ns), int(start_ns + duration_ns))
        for lane in index.lanes_of(LaneKind.WINDOWS)
        for group in index.at(lane, 0)
        if CLASSES[group.event_class] == Work.WINDOW
        for start_ns, duration_ns in zip(group.start_ns, group.duration_ns(0, len(group.start_ns)), strict=True)
    ]


def cut(index: Index, view: View) -> dict[str, Any]:
    """Return a view as plain values, at most :data:`MAX_BYTES` as JSON.

    Returns:
        ``rows``: for each row either ``events``, flat as (start, duration, name, class) since the view's start, or
        ``cells``, base64 of one byte per pixel: ``class * 8 + level``, level 0 for nothing there. ``marks``, base64
        of one bit per pixel: there is a marked event. ``names``: labels of the single events. ``steps``: see :func:`number_steps`.
    """
    wanted = np.zeros(max(1, len(index.names)), np.bool_)
    wanted[list(view.marked)] = True
    edges = view.edges(min(view.pixels, CELLS // max(1, len(view.rows))))
    places = [index.at(*place) for place in view.rows]
    found = [[(group, *group.rows(view.start_ns, view.end_ns)) for group in groups] for groups in places]
    single = _fits([sum(last - first for _, first, last in spans) for spans in found])
    rows, used = [], set[int]()
    for number, (lane, layer) in enumerate(view.rows):
        row: dict[str, Any] = {"lane": lane, "layer": layer}
        if single[number]:
            row["events"] = _single(found[number], view.start_ns)
            used.update(row["events"][2::4])
        else:
            row["cells"] = _fill(places[number], edges)
        if view.marked:
            row["marks"] = _marks(found[number], wanted, edges)
        rows.append(row)
    names = {number: index.labels[number].encode()[:LABEL].decode(errors="ignore") for number in used}
    return {"rows": rows, "names": names, "steps": number_steps(index, view)}


def number_steps(index: Index, view: View) -> list[tuple[int, int, str]]:
    """Return start since the view's start, duration and number of the steps in a view: of as many as have room for it.

    The steps are those of the first host; of many, every second, fifth, tenth and so on is named.
    """
    groups = [group for lane in index.lanes_of(LaneKind.STEPS)[:1] for group in index.at(lane, 0)]
    spans = [(group, *group.rows(view.start_ns, view.end_ns)) for group in groups]
    count = sum(last - first for _, first, last in spans)
    most = max(1, view.pixels // STEP_PIXELS)
    every = next(
        step for power in range(19) for step in (10**power, 2 * 10**power, 5 * 10**power) if step * most >= count
    )
    steps = []
    for group, first, last in spans:
        if first < last and every > 1:
            first += -int(step_number(index, group, first)) % every
        for row in range(first, last, every):
            start_ns, duration_ns = int(group.start_ns[row]), int(group.duration_ns(row, row + 1)[0])
            steps.append((start_ns - view.start_ns, duration_ns, step_number(index, group, row)))
    return steps


def step_number(index: Index, group: Group, row: int) -> str:
    """Return the number of a step as it was recorded."""
    return index.labels[int(group.name[row])].removeprefix("Step ")


def _fits(counts: list[int]) -> list[bool]:
    """Say which rows show single events: those with few, the fewest first, until all together are many."""
    fits, left = [False] * len(counts), ALL_EVENTS
    for number in sorted(range(len(counts)), key=lambda number: counts[number]):
        left -= counts[number]
        fits[number] = counts[number] <= SINGLE_EVENTS and left >= 0
    return fits


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


def _marks(spans: Iterable[tuple[Group, int, int]], wanted: NDArray[np.bool_], edges: IntArray) -> str:
    marks = np.zeros(len(edges) - 1, np.bool_)
    for group, first, last in spans:
        start = group.start_ns[first:last][wanted[group.name[first:last]]]
        marks[np.clip(np.searchsorted(edges, start, "right") - 1, 0, len(marks) - 1)] = True
    return base64.b64encode(np.packbits(marks).tobytes()).decode()
