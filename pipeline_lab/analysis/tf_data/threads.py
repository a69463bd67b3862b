"""The events of a trace that belong to tf.data, thread by thread, as columns: the ground of every analysis here."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.event_names import is_tf_data_pool
from pipeline_lab.analysis.intervals import IntArray
from pipeline_lab.analysis.tf_data import nesting
from pipeline_lab.analysis.tf_data.kinds import Role, role_of
from pipeline_lab.analysis.tf_data.places import NO_STAGE, Places, find_places, is_shared
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.trace.schema import Line, Plane

_IN_ANY_POOL = (Role.NESTED_FUNCTION, Role.PROCESS, Role.DONE, Role.OPERATION)

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
        own_ns: Its length without the events in it.
        parent: Row of the event around it, -1 if there is none.
        role: A :class:`Role`.
        place: Of an iterator's event its stage, else ``NO_STAGE``.
        name: Index of its name on the host's plane.
        event: Its number on its line.
    """

    lines: tuple[Line, ...]
    bounds: IntArray
    places: Places
    start_ns: IntArray
    end_ns: IntArray
    own_ns: IntArray
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

    def rows(self, role: Role) -> IntArray:
        return np.flatnonzero(self.role == role)

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
        values, known = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
        thread = self.thread_of(rows)
        for number in np.unique(thread).tolist():
            at = np.flatnonzero(thread == number)
            events = self.event[rows[at]].astype(np.int64)
            values[at], known[at] = self.lines[number].stats.ints(events, stat)
        return values, known


def read_threads(host: Plane | None) -> Threads:
    """Collect the events of a host that belong to tf.data.

    Raises:
        TraceIncompleteError: No iterator has events.
    """
    roles = np.fromiter(map(role_of, host.names), np.int8, len(host.names)) if host else np.zeros(0, np.int8)
    if host is None or not (roles == Role.ITERATOR).any():
        raise TraceIncompleteError(NO_ITERATORS)
    lines = _input_threads(host, roles)
    places = _find_places(host, lines, roles)
    threads = [_read_thread(line, roles, places) for line in lines]
    counts = [len(thread[0]) for thread in threads]
    bounds = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    start, end, own, parent, role, place, name, event = (
        np.concatenate(column) for column in zip(*threads, strict=True)
    )
    first = np.repeat(bounds[:-1], counts).astype(np.int32)
    parent = np.where(parent >= 0, parent + first, np.int32(-1))
    return Threads(tuple(lines), bounds, places, start, end, own, parent, role, place, name, event)


def _input_threads(host: Plane, roles: RoleArray) -> list[Line]:
    """Return the threads on which tf.data has events; where it has a pool of its own, no other pool runs functions."""
    has_pool = any(is_tf_data_pool(line.name) for line in host.lines)
    of_stages = (roles != Role.NONE) & ~np.isin(roles, _IN_ANY_POOL) if has_pool else roles != Role.NONE
    return [line for line in host.lines if of_stages[line.name_index].any() or is_tf_data_pool(line.name)]


def _find_places(host: Plane, lines: list[Line], roles: RoleArray) -> Places:
    occurs = {shared: np.zeros(len(host.names), np.bool_) for shared in (False, True)}
    for line in lines:
        occurs[is_shared(line.name)][line.name_index] = True
    own, shared = (
        [
            name if here and role == Role.ITERATOR else None
            for name, here, role in zip(host.names, there, roles, strict=True)
        ]
        for there in (occurs[False], occurs[True])
    )
    return find_places(own, shared)


def _read_thread(
    line: Line, roles: RoleArray, places: Places
) -> tuple[IntArray, IntArray, IntArray, IndexArray, RoleArray, IndexArray, IndexArray, IndexArray]:
    event = np.flatnonzero(roles[line.name_index]).astype(np.int32)
    start, end = line.start_ns[event], line.start_ns[event] + line.duration_ns[event]
    if not nesting.is_nested_order(start, end):
        order = np.lexsort((-end, start))
        event, start, end = event[order], start[order], end[order]
    parent, own = np.empty(len(event), np.int32), np.empty(len(event), np.int64)
    nesting.nest(start, end, parent, own)
    of_name = places.of_shared_name if is_shared(line.name) else places.of_name
    names = line.name_index[event]
    place = of_name[names] if len(of_name) else np.full(len(event), NO_STAGE, np.int32)
    return start, end, own, parent, roles[names], place, names, event
