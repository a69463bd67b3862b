"""What a trace is, whatever file it came from: planes, lines, events as columns.

Times are int64 nanoseconds since the trace's own origin; where the capture says when that was, ``origin_epoch_ns``
holds it and several windows of a run can be put on one axis. Stats stay encoded until one is needed.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.data_classes import dataclass
from pipeline_lab.trace import line_columns

IntArray = NDArray[np.int64]
IndexArray = NDArray[np.int32]
"""Indices of 16 or 32 bits, see :func:`index_type`; turn them into int64 before adding to them."""
BoolArray = NDArray[np.bool_]
Made = TypeVar("Made")


def index_type(count: int) -> type[np.int32]:
    """Return the narrowest type for the indices 0 to ``count`` and -1: each event has some, so that 16 bits save much."""
    return cast(type[np.int32], np.int16) if count <= np.iinfo(np.int16).max else np.int32


ChooseStat = Callable[[str], str | None]
"""Returns for the name of an event the stat that is asked of nearly all events of that name; readers may keep it at hand."""


def choose_none(name: str) -> None:
    """Let a reader keep no stat."""


class StatSource(Protocol):
    """Decodes stats of events on demand; rows are event numbers of one line."""

    def ints(self, rows: IntArray, stat: str) -> tuple[IntArray, BoolArray]:
        """Return the stat of each row as int64 (unsigned values wrap) and whether the row has it."""

    def floats(self, rows: IntArray, stat: str) -> NDArray[np.float64]:
        """Return the stat of each row; NaN where a row lacks it."""

    def texts(self, rows: IntArray, stat: str) -> list[str | None]:
        """Return the stat of each row as text, references resolved, numbers written out."""

    def each_ints(self, rows: IntArray, stats: Sequence[str]) -> list[tuple[IntArray, BoolArray]]:
        """Return :meth:`ints` of several stats, read at once where that takes less."""
        return [self.ints(rows, stat) for stat in stats]

    def each_texts(self, rows: IntArray, stats: Sequence[str]) -> list[list[str | None]]:
        """Return :meth:`texts` of several stats likewise."""
        return [self.texts(rows, stat) for stat in stats]


class Reach(NamedTuple):
    """The outermost times of a line's events, and the least and the greatest length, ns."""

    first_start_ns: int
    last_start_ns: int
    last_end_ns: int
    shortest_ns: int
    longest_ns: int


class NamesUsed(NamedTuple):
    """The indices of the names that occur on a line, ascending, how often each does, and the number of its first event; shape (n,)."""

    indices: IntArray
    counts: IntArray
    first: IntArray


def find_named(name_index: line_columns.Indices, names: BoolArray, count: int) -> IntArray:
    """Return the numbers of the events of some names, ascending.

    Args:
        name_index: The name of each event, shape (n,).
        names: A mask over the names.
        count: How many events have one of them.
    """
    rows = np.empty(count + 1, np.int64)
    if count:
        line_columns.find_named(name_index, names, rows)
    return rows[:count]


class MadeOnce(Generic[Made]):
    """A property that is made on first use, of several lines at once; ``cached_property`` waits for its lock until Python 3.12."""

    def __init__(self, make: Callable[[Any], Made]) -> None:
        self._make = make

    def __get__(self, owner: object, kind: type) -> Made:
        made = owner.__dict__[self._make.__name__] = self._make(owner)
        return made


@dataclass(frozen=True, eq=False)
class Line:
    """One thread or stream.

    Attributes:
        id: The line's id, unique inside its plane in sound captures only.
        name: ``python``, ``tf_data_private_threadpool/123``, ``Stream #14(Kernel)``, …
        start_ns: Start of each event since the trace's origin, shape (n,), in file order.
        duration_ns: Length of each event, shape (n,); often 0.
        name_index: Index of each event's name in the plane's ``names``, shape (n,).
        stats: Decoder for the events' stats.
    """

    id: int
    name: str
    start_ns: IntArray
    duration_ns: IntArray
    name_index: IndexArray
    stats: StatSource

    @property
    def count(self) -> int:
        return len(self.start_ns)

    @property
    def end_ns(self) -> IntArray:
        return self.start_ns + self.duration_ns

    @MadeOnce
    def reach(self) -> Reach:
        """The outermost times of its events.

        Raises:
            ValueError: The line has no events.
        """
        if not self.count:
            raise ValueError(f"the line {self.name!r} has no events")
        return Reach(*line_columns.find_reach(self.start_ns, self.duration_ns))

    @MadeOnce
    def names_used(self) -> NamesUsed:
        """Which names its events have."""
        names = int(self.name_index.max(initial=-1)) + 1
        if names > self.count:
            used, first, counts = np.unique(self.name_index, return_index=True, return_counts=True)
            return NamesUsed(used.astype(np.int64), counts, first)
        counts, first = np.zeros(names, np.int64), np.zeros(names, np.int64)
        line_columns.count_names(self.name_index, counts, first)
        indices = np.flatnonzero(counts)
        return NamesUsed(indices, counts[indices], first[indices])

    def count_named(self, names: BoolArray) -> int:
        """Return how many events have one of some names.

        Args:
            names: A mask over the plane's names, as `Plane.name_mask` makes it, shape (n_names,).
        """
        used = self.names_used
        return int(used.counts[names[used.indices]].sum())

    def rows_named(self, names: BoolArray) -> IntArray:
        """Return the numbers of the events that have one of some names, ascending, shape (n,); see `count_named`."""
        return find_named(self.name_index, names, self.count_named(names))


@dataclass(frozen=True, eq=False)
class Plane:
    """One device, or one host's threads.

    Attributes:
        name: ``/host:CPU``, ``/device:GPU:0``, ``Task Environment``, …
        lines: Its threads or streams.
        names: Every event name of the plane; the full path for tf.data iterators.
        display_names: The short form of each name, or the name itself.
        stats: The plane's own stats.
    """

    name: str
    lines: tuple[Line, ...]
    names: tuple[str, ...]
    display_names: tuple[str, ...]
    stats: dict[str, int | float | str]

    @property
    def is_host(self) -> bool:
        return self.name.startswith("/host:") and not self.name.startswith("/host:metadata")

    @property
    def is_device(self) -> bool:
        """Say whether this is a GPU or TPU (custom planes are not)."""
        return self.name.startswith("/device:") and ":CUSTOM:" not in self.name

    @property
    def event_count(self) -> int:
        return sum(line.count for line in self.lines)

    def name_mask(self, matches: Callable[[str], bool]) -> BoolArray:
        """Return which names match, shape (len(names),); `Line.rows_named` selects their events."""
        return np.fromiter((matches(name) for name in self.names), np.bool_, len(self.names))


@dataclass(frozen=True)
class Salvage:
    """What could not be read of a damaged file.

    Attributes:
        bytes_lost: Bytes that were skipped.
        events_kept: Events that were read all the same.
        reason: One sentence: where the damage is and of what kind.
    """

    bytes_lost: int
    events_kept: int
    reason: str


MOST_MESSAGES = 20
"""Different errors or warnings kept of the profiler, which says the same for every device and window."""


@dataclass(frozen=True, eq=False)
class Trace:
    """One host's capture of one window.

    Attributes:
        path: The file it came from.
        host: The host's name, empty if the file does not say.
        window: Name of the session folder, empty for a lone file.
        planes: Its planes; names are unique.
        origin_epoch_ns: Epoch of time 0, or None if the capture does not say.
        start_ns, stop_ns: When the profiler was on, since the origin; None if the capture does not say.
        size_bytes: Length of the file.
        salvage: What was lost, or None for a sound file.
        errors, warnings: What the profiler could not record, in its own words.
        sessions: Start and stop of each, ns, where files of several were put one after another into this one.
    """

    path: Path
    host: str
    window: str
    planes: tuple[Plane, ...]
    origin_epoch_ns: int | None
    start_ns: int | None
    stop_ns: int | None
    size_bytes: int
    salvage: Salvage | None = None
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    sessions: tuple[tuple[int, int], ...] = ()

    def by_session(self) -> tuple["Trace", ...]:
        """Return one trace for each session of the file, on the same axis; of what lies between them nothing is known."""
        if len(self.sessions) < 2:
            return (self,)
        return tuple(self._only(number) for number in range(len(self.sessions)))

    def _only(self, session: int) -> "Trace":
        starts = np.array([start for start, _ in self.sessions], np.int64)

        def is_inside(line: Line) -> bool:
            return line.count > 0 and max(0, int(np.searchsorted(starts, line.start_ns[0], "right")) - 1) == session

        start, stop = self.sessions[session]
        return replace(
            self,
            window=f"{self.window or self.path.name} session {session + 1}",
            planes=tuple(replace(plane, lines=tuple(filter(is_inside, plane.lines))) for plane in self.planes),
            start_ns=start,
            stop_ns=stop,
            size_bytes=self.size_bytes if session == 0 else 0,  # the whole is counted once
            salvage=self.salvage if session == 0 else None,
            sessions=(),
        )

    @property
    def event_count(self) -> int:
        return sum(plane.event_count for plane in self.planes)

    @property
    def host_plane(self) -> Plane | None:
        """The plane of the host's threads (``/host:CPU`` before any other)."""
        hosts = [plane for plane in self.planes if plane.is_host]
        return next((plane for plane in hosts if plane.name == "/host:CPU"), hosts[0] if hosts else None)

    @property
    def device_planes(self) -> tuple[Plane, ...]:
        return tuple(plane for plane in self.planes if plane.is_device)

    def plane(self, name: str) -> Plane | None:
        return next((plane for plane in self.planes if plane.name == name), None)
