"""A timeline's index, mapped: nothing is read until a view asks for it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.timeline.lanes import LaneKind
from pipeline_lab.analysis.timeline.writing import BEFORE, GROUPS, MANIFEST, NAME, START, Lane
from pipeline_lab.data_classes import dataclass


@dataclass(frozen=True, eq=False)
class Group:
    """Events of one lane, layer and class, ordered by start; they do not overlap.

    Attributes:
        lane, layer, event_class: Where they lie and what they are.
        start_ns: Shape (n,).
        before_ns: How much time the events before each one cover, and all of them in the end, shape (n + 1,).
        name: Number of each one's name, shape (n,).
    """

    lane: int
    layer: int
    event_class: int
    start_ns: IntArray
    before_ns: IntArray
    name: NDArray[np.uint32]

    def duration_ns(self, first: int, last: int) -> IntArray:
        """Return the durations of events ``first`` to ``last``, shape (last - first,)."""
        return np.diff(self.before_ns[first : last + 1])

    def rows(self, start_ns: int, end_ns: int) -> tuple[int, int]:
        """Return the range of the events that touch ``[start_ns, end_ns]``."""
        last = int(np.searchsorted(self.start_ns, end_ns, "right"))
        first = int(np.searchsorted(self.start_ns, start_ns, "left"))
        if first and int(self.start_ns[first - 1] + self.duration_ns(first - 1, first)[0]) > start_ns:
            first -= 1
        return first, max(first, last)

    def covered_until(self, times_ns: IntArray) -> IntArray:
        """Return how much time before each moment the events cover, shape of ``times_ns``."""
        index = np.searchsorted(self.start_ns, times_ns, "right")
        until = self.before_ns[index].copy()
        inside = index > 0
        last = index[inside] - 1
        ends = self.start_ns[last] + self.before_ns[last + 1] - self.before_ns[last]
        until[inside] -= np.maximum(0, ends - times_ns[inside])
        return until


@dataclass(frozen=True, eq=False)
class Index:
    """The timeline of one run.

    Attributes:
        lanes: From top to bottom.
        groups: All events.
        names, labels: Full and short names of events.
        counts, totals_ns: How often each name occurs on threads and streams, and for how long.
        start_ns, end_ns: From the first event to the last one.
        facts: What else is known, such as how many files could not be read.
    """

    lanes: tuple[Lane, ...]
    groups: dict[tuple[int, int], tuple[Group, ...]]
    names: tuple[str, ...]
    labels: tuple[str, ...]
    counts: tuple[int, ...]
    totals_ns: tuple[int, ...]
    start_ns: int
    end_ns: int
    facts: dict[str, Any]

    def at(self, lane: int, layer: int) -> tuple[Group, ...]:
        return self.groups.get((lane, layer), ())

    def of_lane(self, lane: int) -> Iterator[tuple[int, tuple[Group, ...]]]:
        """Yield the layers of a lane from the outermost one, each with its groups."""
        for layer in range(self.lanes[lane].layers):
            yield layer, self.at(lane, layer)

    def lanes_of(self, *kinds: LaneKind, host: str | None = None) -> list[int]:
        """Return the numbers of the lanes of these kinds, of one host if it is named."""
        return [
            number
            for number, lane in enumerate(self.lanes)
            if lane.kind in kinds and (host is None or lane.host == host)
        ]


def open_index(folder: Path) -> Index:
    """Map an index.

    Raises:
        OSError, ValueError, KeyError: It is not there or damaged.
    """
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    table = np.load(folder / GROUPS)
    start, before = (_map(folder / name, np.int64) for name in (START, BEFORE))
    name = _map(folder / NAME, np.uint32)
    groups: dict[tuple[int, int], list[Group]] = {}
    for lane, layer, event_class, first, count in table.tolist():
        rows = slice(first, first + count)
        group = Group(lane, layer, event_class, start[rows], before[first : first + count + 1], name[rows])
        groups.setdefault((lane, layer), []).append(group)
    return Index(
        lanes=tuple(Lane(**{**lane, "kind": LaneKind(lane["kind"])}) for lane in manifest.pop("lanes")),
        groups={place: tuple(found) for place, found in groups.items()},
        **{key: tuple(manifest.pop(key)) for key in ("names", "labels", "counts", "totals_ns")},
        start_ns=manifest.pop("start_ns"),
        end_ns=manifest.pop("end_ns"),
        facts=manifest,
    )


def _map(path: Path, kind: type[np.generic]) -> NDArray[Any]:
    if not path.stat().st_size:
        return np.empty(0, kind)
    return np.asarray(np.memmap(path, kind, "r"))
