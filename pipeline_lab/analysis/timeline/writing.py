"""Write a timeline's index: events grouped by lane, layer and class, each group ordered by time.

Captures are added one after another in their own time and spooled to disk, so that memory stays that of one capture;
when all are known, each group is put together on the common axis.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.event_names import ITERATOR, Kind, host_kind, operation
from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.timeline.lanes import CLASS_NUMBER, LaneKind
from pipeline_lab.data_classes import dataclass

START, BEFORE, NAME, GROUPS, MANIFEST = "start.bin", "before.bin", "name.bin", "groups.npy", "timeline.json"
GROUP = np.dtype([("lane", "i4"), ("layer", "i4"), ("event_class", "i4"), ("first", "i8"), ("count", "i8")])
"""One row per group; its arrays lie at ``first`` in each file and hold ``count + 1`` numbers."""
LONGEST_NAME = 400
COMMON = -1
"""Number of the capture whose times are on the common axis already."""
_SPOOLED = np.dtype([("start", "i8"), ("duration", "i8"), ("name", "u4")])


@dataclass
class Lane:
    """One lane of the timeline.

    Attributes:
        kind: What it shows.
        role: ``training``, ``tf.data``, ``other`` or ``stream``; empty for the lanes of the diagnosis.
        host, group, label: Host, plane and name of the thread.
        layers: Number of layers, at least 1.
        busy_ns: Time that its outermost events cover.
        events: Number of events.
        waits: It waited for input.
        deeper: Events nested too deep to be shown.
        mostly: The stage or op with most time on a thread; empty where it has none.
    """

    kind: LaneKind
    role: str
    host: str
    group: str
    label: str
    layers: int = 1
    busy_ns: int = 0
    events: int = 0
    waits: bool = False
    deeper: int = 0
    mostly: str = ""


@dataclass(frozen=True)
class _Piece:
    first: int
    count: int
    capture: int


class IndexWriter:
    """Collects events and writes the index.

    Args:
        folder: An empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lanes: list[Lane] = []
        self._lane_of: dict[tuple[str, ...], int] = {}
        self._names: dict[tuple[str, int], int] = {}
        self._labels: list[str] = []
        self._pieces: dict[tuple[int, int, int], list[_Piece]] = {}
        self._spool_path = folder / "spool.bin"
        self._spool: BinaryIO = self._spool_path.open("wb")
        self._spooled = 0

    def lane(self, key: tuple[str, ...], lane: Lane) -> int:
        """Return the number of the lane with that key; it is made if there is none."""
        if key not in self._lane_of:
            self._lane_of[key] = len(self._lanes)
            self._lanes.append(lane)
        return self._lane_of[key]

    def describe(self, number: int) -> Lane:
        return self._lanes[number]

    def name(self, name: str, label: str = "") -> int:
        """Return the number of an event name; of a long one the beginning is kept."""
        key = name[:LONGEST_NAME], hash(name)
        if key not in self._names:
            self._names[key] = len(self._names)
            self._labels.append((label or name)[:LONGEST_NAME])
        return self._names[key]

    def _short_name(self, number: int) -> str:
        name = operation(next(islice(self._names, number, None))[0])
        return name or self._labels[number].removeprefix(ITERATOR)

    def add(
        self,
        place: tuple[int, int],
        event_class: NDArray[np.uint8],
        times: tuple[IntArray, IntArray],
        name: NDArray[np.uint32],
        capture: int = COMMON,
    ) -> None:
        """Add events that do not overlap, ordered by start.

        Args:
            place: Lane and layer.
            event_class: Class of each event, shape (n,).
            times: Start and duration, ns, shape (n,).
            name: Number of each event's name, shape (n,).
            capture: Number of the capture in whose time the times are.
        """
        start, duration = times
        lane = self._lanes[place[0]]
        lane.layers = max(lane.layers, place[1] + 1)
        lane.events += len(start)
        if place[1] == 0:
            lane.busy_ns += int(duration.sum())
        for one in np.unique(event_class):
            mine = event_class == one
            rows = np.empty(int(mine.sum()), _SPOOLED)
            rows["start"], rows["duration"], rows["name"] = start[mine], duration[mine], name[mine]
            rows.tofile(self._spool)
            piece = _Piece(self._spooled, len(rows), capture)
            self._pieces.setdefault((*place, int(one)), []).append(piece)
            self._spooled += len(rows)

    def finish(self, shifts_ns: Sequence[int], **facts: object) -> None:
        """Write the index.

        Args:
            shifts_ns: What is added to the times of each capture.
            facts: What else the manifest says.
        """
        self._spool.close()
        spool = np.memmap(self._spool_path, _SPOOLED, "r") if self._spooled else np.empty(0, _SPOOLED)
        totals = np.zeros((2, len(self._names)), np.int64)
        work_ns = np.zeros(len(self._names), np.int64)
        is_work = np.array([_is_work(name) for name, _ in self._names], np.bool_)
        start_ns, end_ns, first = [], [], 0
        groups = np.zeros(len(self._pieces), GROUP)
        with (
            (self._folder / START).open("wb") as starts,
            (self._folder / BEFORE).open("wb") as befores,
            (self._folder / NAME).open("wb") as names,
        ):
            ordered = sorted(self._pieces.items())
            for number, (key, pieces) in enumerate(ordered):
                start, duration, name = _join(spool, pieces, shifts_ns)
                np.append(start, np.iinfo(np.int64).max).tofile(starts)
                np.concatenate(([0], np.cumsum(duration))).tofile(befores)
                np.append(name, np.uint32(0)).tofile(names)
                groups[number] = (*key, first, len(start))
                first += len(start) + 1
                start_ns.append(int(start[0]))
                end_ns.append(int((start + duration).max()))
                if self._lanes[key[0]].kind in (LaneKind.STREAM, LaneKind.THREAD):
                    spent_ns = np.bincount(name, duration, len(self._names)).astype(np.int64)
                    totals += np.stack((np.bincount(name, minlength=len(self._names)), spent_ns))
                    work_ns += spent_ns * is_work
                if number + 1 == len(ordered) or ordered[number + 1][0][0] != key[0]:  # the lane's last group
                    if work_ns.any():
                        self._lanes[key[0]].mostly = self._short_name(int(work_ns.argmax()))
                    work_ns[:] = 0
        del spool
        self._spool_path.unlink()
        np.save(self._folder / GROUPS, groups)
        manifest = {
            **facts,
            "start_ns": min(start_ns, default=0),
            "end_ns": max(end_ns, default=0),
            "lanes": [asdict(lane) for lane in self._lanes],
            "classes": list(CLASS_NUMBER),
            "names": [name for name, _ in self._names],
            "labels": self._labels,
            "counts": totals[0].tolist(),
            "totals_ns": totals[1].tolist(),
        }
        (self._folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


def _is_work(name: str) -> bool:
    """Say whether an event is a stage or an op at work, not what runs one or waits for it."""
    kind = host_kind(name)
    is_op = kind & (Kind.OP | Kind.EAGER_OP) and not kind & (Kind.WAIT | Kind.OUTER_WAIT)
    return name.startswith(ITERATOR) or bool(is_op)


def _join(
    spool: np.ndarray, pieces: Sequence[_Piece], shifts_ns: Sequence[int]
) -> tuple[IntArray, IntArray, NDArray[np.uint32]]:
    """Return start, duration and name of a group's events, ordered by start, on the common axis."""
    parts = [spool[piece.first : piece.first + piece.count] for piece in pieces]
    shifts = [0 if piece.capture == COMMON else shifts_ns[piece.capture] for piece in pieces]
    start = np.concatenate([part["start"] + shift for part, shift in zip(parts, shifts, strict=True)])
    duration = np.concatenate([part["duration"] for part in parts])
    name = np.concatenate([part["name"] for part in parts])
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, duration, name = start[order], duration[order], name[order]
    return start, duration, name
