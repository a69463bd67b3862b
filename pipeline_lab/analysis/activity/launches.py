"""Join each call that hands work to a device with what the device did for it.

CUPTI, and what stands in for it elsewhere, gives every launch and copy a ``correlation_id``: the call on the host carries
it (``cuLaunchKernel``, ``cuMemcpyHtoDAsync``; up to TensorFlow 2.3 the call has the kernel's own name), and so does each
event on the device. Stats are decoded of these events alone.
"""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity import event_names
from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.trace.schema import Trace

_HANDS_OVER = re.compile(r"launch|memcpy|memset", re.I)
_CORRELATION = "correlation_id"
UNSEEN = -(2**62)
"""Stands for the times of work of which the trace holds no event."""


@dataclass(frozen=True, eq=False)
class Launches:
    """Calls that hand work to a device, in the order of their starts; what tf.data's threads copy ahead is left out.

    Attributes:
        start_ns, end_ns: The call on the host, shape (n,).
        begun_ns: Start of its first event on a device, shape (n,); :data:`UNSEEN` if there is none.
        done_ns: End of its last one, likewise.
    """

    start_ns: IntArray
    end_ns: IntArray
    begun_ns: IntArray
    done_ns: IntArray

    @property
    def count(self) -> int:
        return len(self.start_ns)

    @cached_property
    def is_seen(self) -> NDArray[np.bool_]:
        """Whether the device's part was recorded; what runs when the profiler stops never is, shape (n,)."""
        return self.done_ns > UNSEEN

    def within(self, spans: IntArray) -> tuple[IntArray, IntArray]:
        """Return for each span the first launch in it and the first one after it, shape (n_spans,) each."""
        return np.searchsorted(self.start_ns, spans[:, 0]), np.searchsorted(self.start_ns, spans[:, 1])

    def done_within(self, spans: IntArray) -> IntArray:
        """Return when the last of each span's launches was done; :data:`UNSEEN` where none was recorded."""
        first, after = self.within(spans)
        done = np.full(len(spans), UNSEEN, np.int64)
        some = after > first
        edges = np.stack((first[some], after[some]), axis=1).ravel()
        if len(edges):
            done[some] = np.maximum.reduceat(np.append(self.done_ns, UNSEEN), edges)[::2]
        return done


def find_launches(trace: Trace) -> Launches:
    """Find the launches of a trace; none where its events carry no correlation ids."""
    name, call, start, end = _calls(trace)
    if not len(call):
        return Launches(call, call, call, call)
    ids, begun, done = _device_work(trace)
    place = np.searchsorted(ids, call)
    seen = np.append(ids, 0)[place] == call
    seen &= place < len(ids)
    kept = _has_counterpart(name, seen)
    place, order = place[kept], np.argsort(start[kept], kind="stable")
    is_seen = seen[kept]
    begun = np.where(is_seen, np.append(begun, 0)[place], UNSEEN)
    done = np.where(is_seen, np.append(done, 0)[place], UNSEEN)
    return Launches(start[kept][order], end[kept][order], begun[order], done[order])


def _calls(trace: Trace) -> tuple[NDArray[np.object_], IntArray, IntArray, IntArray]:
    """Return name, correlation id, start and end of every call that may hand work to a device."""
    on_device = {name for plane in trace.device_planes for name in plane.names}
    names, ids, starts, ends = [np.empty(0, object)], *([np.empty(0, np.int64)] for _ in range(3))
    for plane in (plane for plane in trace.planes if plane.is_host):
        may_launch = plane.name_mask(lambda name: name in on_device or _HANDS_OVER.search(name) is not None)
        text = np.array(plane.names, object) if may_launch.any() else names[0]
        for line in plane.lines if may_launch.any() else ():
            if not line.count or event_names.is_tf_data_thread(line.name):
                continue
            rows = np.flatnonzero(may_launch[line.name_index])
            found, known = line.stats.ints(rows, _CORRELATION)
            rows = rows[known]
            names.append(text[line.name_index[rows]])
            ids.append(found[known])
            starts.append(line.start_ns[rows])
            ends.append(starts[-1] + line.duration_ns[rows])
    return np.concatenate(names), np.concatenate(ids), np.concatenate(starts), np.concatenate(ends)


def _device_work(trace: Trace) -> tuple[IntArray, IntArray, IntArray]:
    """Return each correlation id of the devices, ascending, with the start of its first event and the end of its last."""
    ids, starts, ends = ([np.empty(0, np.int64)] for _ in range(3))
    for plane in trace.device_planes:
        for line in plane.lines:
            if line.count and event_names.is_work_line(plane, line.name):
                found, known = line.stats.ints(np.arange(line.count), _CORRELATION)
                ids.append(found[known])
                starts.append(line.start_ns[known])
                ends.append(line.end_ns[known])
    key, start, end = np.concatenate(ids), np.concatenate(starts), np.concatenate(ends)
    if not len(key):
        return key, start, end
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))
    return key[first], np.minimum.reduceat(start[order], first), np.maximum.reduceat(end[order], first)


def _has_counterpart(name: NDArray[np.object_], seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Say which calls have an event on the device if it is recorded at all: those of names of which one was.

    Where nothing was recorded these are the launches of kernels.
    """
    joined = set(name[seen].tolist())
    return np.fromiter((one in joined if joined else "launch" in one.lower() for one in name), np.bool_, len(name))
