"""Stats of events, decoded from the file's bytes only when needed."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.data_classes import dataclass
from pipeline_lab.trace.file_memory import release_pages
from pipeline_lab.trace.schema import BoolArray, ChooseStat, IndexArray, IntArray, StatSource
from pipeline_lab.trace.wire import ByteArray
from pipeline_lab.trace.xplane import plane_wire

EVENTS = 1 << 18
"""Events of a line that are looked at before the file's pages are given back."""
LARGE_BYTES = 1 << 20


_NONE: IntArray = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class StatNames:
    """The stat names of one plane.

    Attributes:
        by_id: Name of each stat id; references of string stats point here too.
    """

    by_id: Mapping[int, str]

    def ids(self, stat: str) -> IntArray:
        """Return every id of a stat name (names repeat under different ids)."""
        return self._ids.get(stat, _NONE)

    @cached_property
    def _ids(self) -> dict[str, IntArray]:
        found: dict[str, list[int]] = {}
        for key, name in self.by_id.items():
            found.setdefault(name, []).append(key)
        return {name: np.array(keys, np.int64) for name, keys in found.items()}


@dataclass(frozen=True, eq=False)
class Cells:
    """One stat of several events as stored in the file.

    Attributes:
        kinds: Kind of each value, ``plane_wire.ABSENT`` where there is none, shape (n,).
        values: Bits of the number, or begin and end of the text, shape (n, 2).
    """

    kinds: NDArray[np.int8]
    values: IntArray


@dataclass(frozen=True, eq=False)
class ToKeep:
    """Which stat of a plane's events is kept while they are read.

    Attributes:
        stats: The names of such stats.
        first_name: Index of the plane's first name.
        of_name: Which stat it is, by the event's name from there on, -1 for none, shape (names,).
        ids: The ids of all of them.
        bounds: Where those of each begin in ``ids``, and where the last one's end, shape (stats + 1,).
    """

    stats: tuple[str, ...]
    first_name: int
    of_name: NDArray[np.int8]
    ids: IntArray
    bounds: IntArray

    @property
    def arguments(self) -> tuple[int, NDArray[np.int8], IntArray, IntArray]:
        """What `plane_wire.keep_stat` takes."""
        return self.first_name, self.of_name, self.ids, self.bounds


def choose_kept(keep: ChooseStat, event_names: Sequence[str], first_name: int, stat_names: StatNames) -> ToKeep:
    """Ask for each name of a plane which stat of its events is to be kept; those that no event has are not."""
    chosen = list(map(keep, event_names))
    stats = tuple(stat for stat in sorted({each for each in chosen if each is not None}) if len(stat_names.ids(stat)))
    numbers = {stat: number for number, stat in enumerate(stats)}
    of_name = np.array([-1 if stat is None else numbers.get(stat, -1) for stat in chosen], np.int8)
    ids = [stat_names.ids(stat) for stat in stats]
    bounds = np.array([*accumulate(map(len, ids), initial=0)], np.int64)
    return ToKeep(stats, first_name, of_name, np.concatenate([_NONE, *ids]), bounds)


@dataclass(frozen=True, eq=False)
class KeptStats:
    """Numbers that some events of a line have as the stat that is kept of them; those of its events that are not here lack it.

    Attributes:
        chosen: Which stat it is.
        rows: Their events, ascending, shape (n,).
        values: The numbers, shape (n,).
    """

    chosen: ToKeep
    rows: IndexArray
    values: IntArray


class StatKeeper:
    """Collects what is kept of the events of one line while they are read, piece by piece.

    Attributes:
        chosen: Which stat it is.
    """

    def __init__(self, chosen: ToKeep, events: int) -> None:
        self.chosen = chosen
        most = events if chosen.stats else 0  # where none comes to lie, the system gives no memory
        self._rows, self._values = np.empty(most, np.int32), np.empty(most, np.int64)
        self._count = 0

    @property
    def room(self) -> tuple[NDArray[np.int32], IntArray]:
        """Where `plane_wire.fill_events` puts it."""
        return self._rows[self._count :], self._values[self._count :]

    def add(self, count: int) -> None:
        """Take what was kept of a piece; a stat that is something else than a number (-1) ends it."""
        if count < 0:
            self.chosen = replace(self.chosen, stats=(), of_name=np.full_like(self.chosen.of_name, -1))
        else:
            self._count += count

    def kept(self) -> KeptStats | None:
        """Return all that was kept; None if nothing can be said from it."""
        if not self.chosen.stats:
            return None
        return KeptStats(self.chosen, self._rows[: self._count], self._values[: self._count])


@dataclass(frozen=True, eq=False)
class EventStats(StatSource):
    """Decodes the stats of one line's events.

    What an event does not carry itself is looked up in its metadata, where TPU captures keep what all events of one
    operation share.

    Attributes:
        data: The file.
        stop: End of the line's bytes.
        offsets: Position of every ``stride``-th event.
        stride: Events per entry of ``offsets``.
        name_index: Index of each event's name in the plane, shape (n,).
        first_name: Index of the name that the first of ``bodies`` belongs to.
        bodies: Bounds of the plane's event metadata that hold stats, shape (m, 2), or (0, 2) if none does.
        names: The plane's stat names.
        kept: What need not be looked for.
    """

    data: ByteArray
    stop: int
    offsets: IntArray
    stride: int
    name_index: IndexArray
    first_name: int
    bodies: IntArray
    names: StatNames
    kept: KeptStats | None = None

    def ints(self, rows: IntArray, stat: str) -> tuple[IntArray, BoolArray]:
        return self._find_kept(rows, stat) or self._as_ints(*self._find(rows, (stat,)))

    def each_ints(self, rows: IntArray, stats: Sequence[str]) -> list[tuple[IntArray, BoolArray]]:
        if len(stats) == 1:
            return [self.ints(rows, stats[0])]
        return list(map(self._as_ints, self._find(rows, stats)))

    def _find_kept(self, rows: IntArray, stat: str) -> tuple[IntArray, BoolArray] | None:
        """Return a stat of events that was kept of all of them, else None."""
        if self.kept is None or stat not in self.kept.chosen.stats:
            return None
        rows = self._checked(rows)
        chosen, known, values = self.kept.chosen, np.empty(len(rows), np.bool_), np.empty(len(rows), np.int64)
        number = chosen.stats.index(stat)
        numbers = (self.kept.rows, self.kept.values)
        found = plane_wire.find_kept(
            numbers, self.name_index, chosen.first_name, chosen.of_name, number, rows, known, values
        )
        return (values, known) if found else None

    def _checked(self, rows: IntArray) -> IntArray:
        rows = np.ascontiguousarray(rows, np.int64)
        if (rows.view(np.uint64) >= len(self.name_index)).any():  # negative ones are large then
            raise IndexError(f"rows must lie in [0, {len(self.name_index)})")
        return rows

    def _as_ints(self, cells: Cells) -> tuple[IntArray, BoolArray]:
        is_number = (cells.kinds == plane_wire.INT64) | (cells.kinds == plane_wire.UINT64)
        values = np.where(is_number, cells.values[:, 0], 0)
        others = ((cells.kinds != plane_wire.ABSENT) & ~is_number).nonzero()[0]
        for row in others.tolist():
            number = as_int(decode(self.data, self.names, cells, row))
            if number is not None:
                values[row], is_number[row] = number, True
        return values, is_number

    def floats(self, rows: IntArray, stat: str) -> NDArray[np.float64]:
        (cells,) = self._find(rows, (stat,))
        bits = np.ascontiguousarray(cells.values[:, 0])
        values = np.full(len(bits), np.nan)
        for kind, numbers in (
            (plane_wire.DOUBLE, bits.view(np.float64)),
            (plane_wire.INT64, bits),
            (plane_wire.UINT64, bits.view(np.uint64)),
        ):
            values = np.where(cells.kinds == kind, numbers, values)
        for row in np.flatnonzero((cells.kinds == plane_wire.TEXT) | (cells.kinds == plane_wire.REFERENCE)):
            values[row] = as_float(str(decode(self.data, self.names, cells, int(row))))
        return values

    def texts(self, rows: IntArray, stat: str) -> list[str | None]:
        return self._as_texts(*self._find(rows, (stat,)))

    def each_texts(self, rows: IntArray, stats: Sequence[str]) -> list[list[str | None]]:
        return list(map(self._as_texts, self._find(rows, stats)))

    def _as_texts(self, cells: Cells) -> list[str | None]:
        values: list[str | None] = [None] * len(cells.kinds)
        for row in np.flatnonzero(cells.kinds != plane_wire.ABSENT).tolist():
            value = decode(self.data, self.names, cells, row)
            values[row] = None if value is None else str(value)
        return values

    def _find(self, rows: IntArray, stats: Sequence[str]) -> list[Cells]:
        """Find some stats of some events, all of an event's at once."""
        rows = self._checked(rows)
        wanted = [self.names.ids(stat) for stat in stats]
        kinds, values = np.zeros((len(stats), len(rows)), np.int8), np.zeros((len(stats), len(rows), 2), np.int64)
        found = list(map(Cells, kinds, values))
        bounds = np.array([*accumulate(map(len, wanted), initial=0)], np.int64)
        if not bounds[-1]:
            return found
        ids = np.concatenate(wanted)
        for piece in _pieces(rows):
            plane_wire.find_event_stats(
                self.data,
                self.stop,
                self.offsets,
                self.stride,
                rows,
                piece.start,
                piece.stop,
                ids,
                bounds,
                kinds,
                values,
            )
            self._release(rows[piece])
        if len(self.bodies):
            for cells, ids_of_one in zip(found, wanted, strict=True):
                missing = np.flatnonzero(cells.kinds == plane_wire.ABSENT)
                if len(missing) and len(ids_of_one):
                    self._find_shared(cells, missing, self.name_index[rows[missing]] - self.first_name, ids_of_one)
        return found

    def _release(self, rows: IntArray) -> None:
        """Give the part of the file back to the system that a look into these events has touched, if it is large."""
        if len(rows):
            begin, end = (int(self.offsets[row // self.stride]) for row in (rows[0], rows[-1]))
            if end - begin >= LARGE_BYTES:
                release_pages(self.data, begin, end)

    def _find_shared(self, cells: Cells, missing: IntArray, names: IndexArray, wanted: IntArray) -> None:
        named = (names >= 0) & (names < len(self.bodies))
        missing, (used, inverse) = missing[named], np.unique(names[named], return_inverse=True)
        kinds, values = np.zeros(len(used), np.int8), np.zeros((len(used), 2), np.int64)
        plane_wire.find_name_stats(self.data, self.bodies[used], wanted, kinds, values)
        cells.kinds[missing], cells.values[missing] = kinds[inverse], values[inverse]


def _pieces(rows: IntArray) -> Iterator[slice]:
    """Cut rows into pieces that lie within :data:`EVENTS` events each; rows that are out of order make one."""
    if len(rows) < 2 or rows[-1] - rows[0] < EVENTS or (rows[1:] < rows[:-1]).any():
        yield slice(0, len(rows))
        return
    cuts = np.searchsorted(rows, np.arange(rows[0], rows[-1] + EVENTS, EVENTS)).tolist()
    yield from (slice(first, after) for first, after in pairwise([*cuts, len(rows)]) if first < after)


def decode(data: ByteArray, names: StatNames, cells: Cells, row: int) -> int | float | str | None:
    """Return one cell as a Python value; None if there is none or a reference leads nowhere."""
    kind, first, second = int(cells.kinds[row]), int(cells.values[row, 0]), int(cells.values[row, 1])
    if kind == plane_wire.INT64:
        return first
    if kind == plane_wire.UINT64:
        return first % 2**64
    if kind == plane_wire.DOUBLE:
        return float(np.int64(first).view(np.float64))
    if kind == plane_wire.REFERENCE:
        return names.by_id.get(first)
    return None if kind == plane_wire.ABSENT else text(data, first, second)


def text(data: ByteArray, begin: int, end: int) -> str:
    """Return bytes of the file as text; invalid UTF-8 is replaced."""
    return data[begin:end].tobytes().decode("utf-8", "replace")


def as_int(value: int | float | str | None) -> int | None:
    """Return a stat as int64, or None if it is not a whole number that fits."""
    try:
        number = int(value) if isinstance(value, str) else value
    except ValueError:
        return None
    if number is None or (isinstance(number, float) and not (math.isfinite(number) and number.is_integer())):
        return None
    whole = int(number)
    return whole if -(2**63) <= whole < 2**63 else None


def as_float(value: str) -> float:
    """Return a stat that was written as text as a number, or NaN."""
    try:
        return float(value)
    except ValueError:
        return math.nan
