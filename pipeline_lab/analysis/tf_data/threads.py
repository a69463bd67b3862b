"""The events of a trace that belong to tf.data, thread by thread, as columns: the ground of every analysis here."""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.event_names import is_tf_data_pool
from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.tf_data import kernels
from pipeline_lab.analysis.tf_data.iterator_places import IteratorPlaces, find_iterator_places, is_shared
from pipeline_lab.analysis.tf_data.kinds import EventRole, is_any, role_of
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.trace.parallel import on_all_cores
from pipeline_lab.trace.schema import Line, MadeOnce, Plane, find_named, index_type

_IN_ANY_POOL = (EventRole.NESTED_FUNCTION, EventRole.PROCESS, EventRole.DONE, EventRole.OPERATION)

IndexArray = NDArray[np.int32]
RoleArray = NDArray[np.int8]

NO_ITERATORS = (
    "No tf.data events in this trace: its input did not come from tf.data, or the host was not recorded; record the host "
    "with host_tracer_level=2 while the job reads from a tf.data pipeline."
)


@dataclass(frozen=True, eq=False)
class Threads:
    """Events as columns of shape (n,), one thread after another; on a thread an outer event comes before what is in it.

    Attributes:
        lines: The threads.
        bounds: Where each thread's events begin, and where the last one's end, shape (n_lines + 1,).
        places: The stages that occur.
        start_ns, end_ns: When each event ran; ends do not reach beyond that of the event around.
        parent: Row of the event around it, -1 if there is none.
        role_of_name: The :class:`EventRole` of every name of the host's plane, shape (n_names,).
        role: That of each event.
        place: Of an iterator's event its stage; of others ``NO_STAGE`` until `find_functions` knows better.
        name: Index of its name on the host's plane.
        event: Its number on its line.
    """

    lines: tuple[Line, ...]
    bounds: IntArray
    places: IteratorPlaces
    role_of_name: RoleArray
    start_ns: IntArray
    end_ns: IntArray
    parent: IndexArray
    role: RoleArray
    place: IndexArray
    name: IndexArray
    event: IndexArray

    @property
    def count(self) -> int:
        return len(self.start_ns)

    def rows_of(self, line: int) -> slice:
        return slice(int(self.bounds[line]), int(self.bounds[line + 1]))

    def rows(self, *roles: EventRole) -> IntArray:
        wanted = is_any(np.arange(len(EventRole), dtype=np.int8), *roles)
        return find_named(self.role, wanted, self.count_of(*roles))

    def count_of(self, *roles: EventRole) -> int:
        names = is_any(self.role_of_name, *roles)
        return sum(line.count_named(names) for line in self.lines)

    def names_of(self, role: EventRole) -> list[int]:
        """Return the indices of the names of that role that occur, ascending."""
        used = np.unique(np.concatenate([line.names_used.indices for line in self.lines]))
        return cast(list[int], used[self.role_of_name[used] == role].tolist())

    @MadeOnce
    def outermost(self) -> IntArray:
        """The rows of iterators' events that lie in no other event."""
        rows = np.empty(self.count_of(EventRole.ITERATOR), np.int64)
        return rows[: kernels.find_outermost(self.role, self.parent, rows)]

    def thread_of(self, rows: IntArray) -> IntArray:
        """Return the number of the thread on which each row lies."""
        return np.searchsorted(self.bounds, rows, side="right") - 1

    def recorded_end_ns(self, rows: IntArray) -> IntArray:
        """Return when these rows ended as it was recorded, beyond the event around it too."""
        end = np.empty(len(rows), np.int64)
        thread = self.thread_of(rows)
        for number in np.unique(thread).tolist():
            at = np.flatnonzero(thread == number)
            line, events = self.lines[number], self.event[rows[at]]
            end[at] = line.start_ns[events] + line.duration_ns[events]
        return end

    def ints(self, rows: IntArray, stat: str) -> tuple[IntArray, NDArray[np.bool_]]:
        """Return a stat of these rows, and which of them have it."""
        (found,) = self.each_ints(rows, (stat,))
        return found

    def each_ints(self, rows: IntArray, stats: Sequence[str]) -> list[tuple[IntArray, NDArray[np.bool_]]]:
        """Return several stats of these rows, and which of them have each."""
        found = [(np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)) for _ in stats]

        def read(part: tuple[int, slice | IntArray]) -> None:
            number, at = part
            events = self.event[rows[at]].astype(np.int64)
            told = self.lines[number].stats.each_ints(events, stats)
            for (values, known), (those, are_known) in zip(found, told, strict=True):
                values[at], known[at] = those, are_known

        on_all_cores(read, self._by_thread(rows), len(rows))
        return found

    def texts(self, rows: IntArray, stat: str) -> list[str]:
        """Return a stat of these rows as text; empty where there is none."""
        (found,) = self.each_texts(rows, (stat,))
        return found

    def each_texts(self, rows: IntArray, stats: Sequence[str]) -> list[list[str]]:
        """Return several stats of these rows as text."""
        found = [np.full(len(rows), "", np.object_) for _ in stats]
        for number, at in self._by_thread(rows):
            told = self.lines[number].stats.each_texts(self.event[rows[at]].astype(np.int64), stats)
            for values, those in zip(found, told, strict=True):
                values[at] = those
        return [[value or "" for value in values] for values in found]

    def _by_thread(self, rows: IntArray) -> list[tuple[int, slice | IntArray]]:
        """Return the numbers of the threads that have any of these rows, and where in ``rows`` those lie."""
        if not (rows[1:] < rows[:-1]).any():  # in order, as nearly always: each thread's lie together
            cuts = np.searchsorted(rows, self.bounds).tolist()
            return [(number, slice(*ends)) for number, ends in enumerate(pairwise(cuts)) if ends[0] < ends[1]]
        thread = self.thread_of(rows)
        return [(number, np.flatnonzero(thread == number)) for number in np.unique(thread).tolist()]


def read_threads(host: Plane | None) -> Threads:
    """Collect the events of a host that belong to tf.data.

    Raises:
        TraceIncompleteError: No iterator has events.
    """
    roles = np.fromiter(map(role_of, host.names), np.int8, len(host.names)) if host else np.zeros(0, np.int8)
    if host is None or not (roles == EventRole.ITERATOR).any():
        raise TraceIncompleteError(NO_ITERATORS)
    of_stages = _tells_stages(host, roles)
    tells = on_all_cores(lambda line: line.count_named(of_stages) > 0, host.lines, host.event_count)
    found = [line for line, told in zip(host.lines, tells, strict=True) if told or is_tf_data_pool(line.name)]
    places = _find_places(host, found, roles)
    if not places.places:  # of a damaged file only the names may be left
        raise TraceIncompleteError(NO_ITERATORS)
    bounds = np.cumsum([0, *(line.count_named(roles != EventRole.NONE) for line in found)])
    threads = _empty_threads(tuple(found), bounds, places, roles)
    on_all_cores(lambda number: _read_thread(threads, number), range(len(found)), threads.count)
    return threads


def _tells_stages(host: Plane, roles: RoleArray) -> NDArray[np.bool_]:
    """Say which names tell that a thread works for tf.data; where it has a pool of its own, no other pool runs functions."""
    found: NDArray[np.bool_] = roles != EventRole.NONE
    has_pool = any(is_tf_data_pool(line.name) for line in host.lines)
    return found & ~is_any(roles, *_IN_ANY_POOL) if has_pool else found


def _find_places(host: Plane, found: list[Line], roles: RoleArray) -> IteratorPlaces:
    occurs = {shared: np.zeros(len(host.names), np.bool_) for shared in (False, True)}
    for line in found:
        occurs[is_shared(line.name)][line.names_used.indices] = True
    of_iterators = roles == EventRole.ITERATOR
    own, shared = (
        [name if is_here else None for name, is_here in zip(host.names, (there & of_iterators).tolist(), strict=True)]
        for there in (occurs[False], occurs[True])
    )
    return find_iterator_places(own, shared)


def _empty_threads(lines: tuple[Line, ...], bounds: IntArray, places: IteratorPlaces, roles: RoleArray) -> Threads:
    count = int(bounds[-1])
    return Threads(
        lines,
        bounds,
        places,
        roles,
        start_ns=np.empty(count, np.int64),
        end_ns=np.empty(count, np.int64),
        parent=np.empty(count, np.int32),
        role=np.empty(count, np.int8),
        place=np.empty(count, index_type(len(places.places))),
        name=np.empty(count, index_type(len(roles))),
        event=np.empty(count, np.int32),
    )


def _read_thread(threads: Threads, number: int) -> None:
    """Fill the rows of one thread."""
    line, rows = threads.lines[number], threads.rows_of(number)
    stages = threads.places.of_shared_name if is_shared(line.name) else threads.places.of_name
    columns = (threads.start_ns, threads.end_ns, threads.role, threads.place, threads.name, threads.event)
    own_rows = (
        threads.start_ns[rows],
        threads.end_ns[rows],
        threads.role[rows],
        threads.place[rows],
        threads.name[rows],
        threads.event[rows],
    )
    if not kernels.collect((line.start_ns, line.duration_ns, line.name_index), threads.role_of_name, stages, own_rows):
        order = np.lexsort((-threads.end_ns[rows], threads.start_ns[rows]))
        for column in columns:
            column[rows] = column[rows][order]
    kernels.nest(rows.start, rows.stop, threads.start_ns, threads.end_ns, threads.parent)
