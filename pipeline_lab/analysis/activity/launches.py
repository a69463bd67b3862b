"""Join each call that hands work to a device with what the device did for it.

CUPTI, and what stands in for it elsewhere, gives every launch and copy a ``correlation_id``: the call on the host carries
it (``cuLaunchKernel``, ``cuMemcpyHtoDAsync``; up to TensorFlow 2.3 the call has the kernel's own name), and so does each
event on the device. Stats are decoded of these events alone.
"""

import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity import event_names
from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.data_classes import dataclass
from pipeline_lab.trace.parallel import on_all_cores
from pipeline_lab.trace.schema import Line, Trace

_HANDS_OVER = re.compile(r"launch|memcpy|memset", re.I)
_CORRELATION = "correlation_id"
UNSEEN = -(2**62)
"""Stands for the times of work of which the trace holds no event."""
UNKNOWN_THREAD = -1


@dataclass(frozen=True, eq=False)
class Launches:
    """Calls that hand work to a device, in the order of their starts; what tf.data's threads copy ahead is left out.

    Attributes:
        start_ns, end_ns: The call on the host, shape (n,).
        begun_ns: Start of its first event on a device, shape (n,); :data:`UNSEEN` if there is none.
        done_ns: End of its last one, likewise.
        thread: Id of the line that the call is on, :data:`UNKNOWN_THREAD` if that is a line of the device's tracer alone,
            shape (n,).
    """

    start_ns: IntArray
    end_ns: IntArray
    begun_ns: IntArray
    done_ns: IntArray
    thread: IntArray

    @property
    def count(self) -> int:
        return len(self.start_ns)

    @cached_property
    def is_seen(self) -> NDArray[np.bool_]:
        """Whether the device's part was recorded; what runs when the profiler stops never is, shape (n,)."""
        return self.done_ns > UNSEEN

    def hold_one(self, line: Line, rows: IntArray) -> NDArray[np.bool_]:
        """Say which events of a thread launched something, shape of ``rows``: ops that run on a device, not on the host."""
        if not self.count:
            return np.zeros(len(rows), np.bool_)
        own = self.start_ns[(self.thread == line.id) | (self.thread == UNKNOWN_THREAD)]
        start = line.start_ns[rows]
        return np.searchsorted(own, start + line.duration_ns[rows]) > np.searchsorted(own, start)

    def within(self, spans: IntArray) -> tuple[IntArray, IntArray]:
        """Return for each span the first launch in it and the first one after it, shape (n_spans,) each."""
        return np.searchsorted(self.start_ns, spans[:, 0]), np.searchsorted(self.start_ns, spans[:, 1])

    def worked_within(self, spans: IntArray) -> IntArray:
        """Return how long devices worked for each span's launches, as far as that was recorded, ns, shape (n_spans,)."""
        first, after = self.within(spans)
        worked = np.concatenate(([0], np.cumsum(np.where(self.is_seen, self.done_ns - self.begun_ns, 0))))
        return worked[after] - worked[first]

    def begun_within(self, spans: IntArray) -> IntArray:
        """Return when devices began with each span's launches; :data:`UNSEEN` where none was recorded."""
        first, after = self.within(spans)
        begun = np.full(len(spans), UNSEEN, np.int64)
        some = after > first
        edges = np.stack((first[some], after[some]), axis=1).ravel()
        if len(edges):
            earliest = np.minimum.reduceat(np.append(np.where(self.is_seen, self.begun_ns, -UNSEEN), -UNSEEN), edges)[
                ::2
            ]
            begun[some] = np.where(earliest < -UNSEEN, earliest, UNSEEN)
        return begun

    def done_within(self, spans: IntArray) -> IntArray:
        """Return when the last of each span's launches was done; :data:`UNSEEN` where none was recorded."""
        first, after = self.within(spans)
        done = np.full(len(spans), UNSEEN, np.int64)
        some = after > first
        edges = np.stack((first[some], after[some]), axis=1).ravel()
        if len(edges):
            done[some] = np.maximum.reduceat(np.append(self.done_ns, UNSEEN), edges)[::2]
        return done


NO_LAUNCHES = Launches(*[np.empty(0, np.int64)] * 5)
MOST_QUEUED = 1024
"""Launches that may wait for a CUDA device; the next one waits on the host."""


def find_launches(trace: Trace) -> Launches:
    """Find the launches of a trace; none where its events carry no correlation ids."""
    calls = _find_calls(trace)
    if not len(calls.correlation):
        return NO_LAUNCHES
    lines = [
        line for plane in trace.device_planes for line in plane.lines if event_names.is_work_line(plane, line.name)
    ]
    ids, begun, done = _device_work([line for line in lines if line.count])
    if not len(ids) and any(line.count for line in lines):
        return NO_LAUNCHES
    place = np.searchsorted(ids, calls.correlation)
    seen = np.append(ids, 0)[place] == calls.correlation
    seen &= place < len(ids)
    kept = calls.have_counterpart(seen)
    order = np.flatnonzero(kept)[np.argsort(calls.start_ns[kept], kind="stable")]
    place, seen = place[order], seen[order]
    begun, done = (np.where(seen, np.append(times, 0)[place], UNSEEN) for times in (begun, done))
    return Launches(calls.start_ns[order], calls.end_ns[order], begun, done, calls.thread[order])


@dataclass(frozen=True, eq=False)
class _Calls:
    """Calls that may hand work to a device: index of each one's name, its id, start, end and thread, shape (n,)."""

    names: tuple[str, ...]
    name: IntArray
    correlation: IntArray
    start_ns: IntArray
    end_ns: IntArray
    thread: IntArray

    def have_counterpart(self, seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Say which have an event on the device if it is recorded at all: those of names of which one was.

        Where nothing was recorded these are the launches of kernels.
        """
        of_name = np.zeros(len(self.names), np.bool_)
        of_name[self.name[seen]] = True
        if not seen.any():
            of_name = np.array(["launch" in name.lower() for name in self.names], np.bool_)
        return of_name[self.name]


def _find_calls(trace: Trace) -> _Calls:
    on_device = {name for plane in trace.device_planes for name in plane.names}
    texts: list[str] = []
    names, starts, ends, threads = ([np.empty(0, np.int64)] for _ in range(4))
    asked: list[tuple[Line, IntArray]] = []
    for plane in (plane for plane in trace.planes if plane.is_host):
        may_launch = plane.name_mask(lambda name: name in on_device or _HANDS_OVER.search(name) is not None)
        for line in plane.lines if may_launch.any() else ():
            if not line.count or event_names.is_tf_data_thread(line.name):
                continue
            rows = line.rows_named(may_launch)
            asked.append((line, rows))
            names.append(line.name_index[rows] + np.int64(len(texts)))
            starts.append(line.start_ns[rows])
            ends.append(starts[-1] + line.duration_ns[rows])
            threads.append(np.full(len(rows), line.id if line.name else UNKNOWN_THREAD, np.int64))
        texts += plane.names
    ids, known = _read_ids(asked)
    name, start, end, thread = (np.concatenate(parts)[known] for parts in (names, starts, ends, threads))
    return _Calls(tuple(texts), name, ids[known], start, end, thread)


def _device_work(lines: Sequence[Line]) -> tuple[IntArray, IntArray, IntArray]:
    """Return each correlation id of the devices, ascending, with the start of its first event and the end of its last."""
    ids, known = _read_ids([(line, np.arange(line.count)) for line in lines])
    none = [np.empty(0, np.int64)]
    start, end = (
        np.concatenate([*none, *times])[known]
        for times in ([line.start_ns for line in lines], [line.end_ns for line in lines])
    )
    key = ids[known]
    order = np.argsort(key, kind="stable")
    key, start, end = key[order], start[order], end[order]
    first = np.flatnonzero(np.diff(key, prepend=key[:1] - 1))
    if len(first) == len(key):
        return key, start, end
    return key[first], np.minimum.reduceat(start, first), np.maximum.reduceat(end, first)


WORTH_A_THREAD = 50_000
"""Events whose ids are read on several cores."""
MOST_PARTS = 4
"""Of a line; after each, the file's pages leave the memory and may have to be found again."""


def _read_ids(asked: Sequence[tuple[Line, IntArray]]) -> tuple[IntArray, NDArray[np.bool_]]:
    """Return the correlation ids of some rows of each line, one line after another, and which rows have one."""
    parts = [
        (line, part)
        for line, rows in asked
        for part in np.array_split(rows, min(MOST_PARTS, 1 + len(rows) // WORTH_A_THREAD))
    ]
    is_large = sum(len(rows) for _, rows in asked) >= WORTH_A_THREAD
    each = on_all_cores if is_large else map
    found = list(each(lambda part: part[0].stats.ints(part[1], _CORRELATION), parts))
    ids = np.concatenate([np.empty(0, np.int64), *(one for one, _ in found)])
    return ids, np.concatenate([np.empty(0, np.bool_), *(known for _, known in found)])
