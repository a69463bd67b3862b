"""Arithmetic on sets of time intervals, as plain int64 arrays.

A *set* is an array of shape (n, 2) with half-open rows ``[start, end)``, sorted, non-empty, and apart from each other.
:func:`union` makes one from any events; everything else takes sets and returns sets. All of it is O(n log n) without
a Python loop, because one trace holds millions of events.
"""

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.trace.compiled import compiled

IntArray = NDArray[np.int64]
WORTH_COMPILED = 4096
"""Rows from which on compiled loops do the work, which pass over the rows once; the results are the same."""

EMPTY: IntArray = np.empty((0, 2), np.int64)
EMPTY.setflags(write=False)


def union(start: IntArray, end: IntArray) -> IntArray:
    """Join overlapping and touching events; events of no length vanish.

    Args:
        start: Start of each event, any order, shape (n,).
        end: End of each event, shape (n,).

    Returns:
        The set of moments that at least one event covers, shape (m, 2).
    """
    lasting = end > start
    if not lasting.all():
        start, end = start[lasting], end[lasting]
    if not len(start):
        return EMPTY
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    if len(start) >= WORTH_COMPILED:
        joined = np.empty((len(start), 2), np.int64)
        joined.resize((join(start, end, joined), 2), refcheck=False)  # in place, where a slice would keep all of it
        return joined
    reach = np.maximum.accumulate(end)
    first = np.concatenate(([True], start[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return as_intervals(start[first], reach[last])


def as_intervals(start: IntArray, end: IntArray) -> IntArray:
    """Lay starts and ends beside each other, shape (n, 2); for short ones a fraction of the time of ``np.stack``."""
    both = np.empty((len(start), 2), np.int64)
    both[:, 0], both[:, 1] = start, end
    return both


def outermost(start: IntArray, end: IntArray) -> IntArray:
    """Return the numbers of the intervals that begin in no other, in the order of their starts; of two that begin together the longer."""
    order = np.lexsort((-end, start))
    reach = np.maximum.accumulate(end[order])
    return order[np.append(order[:1] >= 0, start[order][1:] >= reach[:-1])]


def union_by(key: IntArray, start: IntArray, end: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Join overlapping intervals of the same key, and only those.

    Args:
        key: What each belongs to, shape (n,).
        start, end: ns, shape (n,).

    Returns:
        Key, start and end of each joined interval, ordered by start.
    """
    lasting = end > start
    key, start, end = key[lasting], start[lasting], end[lasting]
    if not len(key):
        return key, start, end
    # Lay each key's intervals on a stretch of time of its own.
    values, rank = np.unique(key, return_inverse=True)
    origin, span = start.min(), end.max() - start.min() + 1
    joined = union(start - origin + rank * span, end - origin + rank * span)
    rank = joined[:, 0] // span
    start, end = joined[:, 0] - rank * span + origin, joined[:, 1] - rank * span + origin
    order = np.argsort(start, kind="stable")
    return values[rank][order], start[order], end[order]


def union_of(*sets: IntArray) -> IntArray:
    """Return the moments that at least one of the sets covers."""
    lasting = [one for one in sets if len(one)]
    if len(lasting) < 2:
        return lasting[0] if lasting else EMPTY
    rows = np.concatenate(lasting)
    return union(rows[:, 0], rows[:, 1])


def complement(intervals: IntArray, start: int, end: int) -> IntArray:
    """Return the gaps of a set inside a window ``[start, end)``."""
    inside = clip(intervals, start, end)
    starts = np.concatenate(([start], inside[:, 1]))
    ends = np.concatenate((inside[:, 0], [end]))
    keep = ends > starts
    return as_intervals(starts[keep], ends[keep])


def intersect(left: IntArray, right: IntArray) -> IntArray:
    """Return the moments that both sets cover."""
    if not len(left) or not len(right):
        return EMPTY
    if len(left) + len(right) >= WORTH_COMPILED:
        both = np.empty((len(left) + len(right), 2), np.int64)
        both.resize((meet(left, right, both), 2), refcheck=False)
        return both
    first = np.searchsorted(right[:, 1], left[:, 0], side="right")
    after = np.searchsorted(right[:, 0], left[:, 1], side="left")
    rows, partners = pair_ranges(first, after)
    starts = np.maximum(left[rows, 0], right[partners, 0])
    ends = np.minimum(left[rows, 1], right[partners, 1])
    return as_intervals(starts, ends)


def subtract(left: IntArray, right: IntArray) -> IntArray:
    """Return the moments that ``left`` covers and ``right`` does not."""
    if not len(left) or not len(right):
        return left
    if len(left) + len(right) >= WORTH_COMPILED:
        rest = np.empty((len(left) + len(right), 2), np.int64)
        rest.resize((leave_out(left, right, rest), 2), refcheck=False)
        return rest
    return intersect(left, complement(right, int(left[0, 0]), int(left[-1, 1])))


def clip(intervals: IntArray, start: int, end: int) -> IntArray:
    """Return the part of a set inside a window ``[start, end)``."""
    first = np.searchsorted(intervals[:, 1], start, side="right")
    after = np.searchsorted(intervals[:, 0], end, side="left")
    inside = intervals[first : max(first, after)]
    return np.minimum(np.maximum(inside, start), end) if end > start else EMPTY


def total(intervals: IntArray) -> int:
    """Return the length of a set, ns."""
    return int((intervals[:, 1] - intervals[:, 0]).sum())


def covered_until(intervals: IntArray, times: IntArray) -> IntArray:
    """Return how much of a set lies before each time, shape of ``times``, ns."""
    if not len(intervals):
        return np.zeros(np.shape(times), np.int64)
    lengths = intervals[:, 1] - intervals[:, 0]
    before = np.zeros(len(lengths) + 1, np.int64)
    lengths.cumsum(out=before[1:])
    if np.size(times) >= WORTH_COMPILED:
        covered = np.empty(len(times), np.int64)
        cover(intervals, before, times, covered)
        return covered
    index = intervals[:, 0].searchsorted(times, side="right")
    overshoot = np.maximum(0, intervals[np.maximum(index - 1, 0), 1] - times)
    return np.asarray(before[index] - np.where(index > 0, overshoot, 0), np.int64)


def length_within(intervals: IntArray, bins: IntArray) -> IntArray:
    """Return how much of a set lies in each bin.

    Args:
        intervals: A set.
        bins: Any intervals, also overlapping ones, shape (k, 2).

    Returns:
        Length of the overlap with each bin, shape (k,), ns.
    """
    if not len(intervals) or not len(bins):
        return np.zeros(len(bins), np.int64)
    covered = covered_until(intervals, bins.ravel())
    return covered[1::2] - covered[::2]


def find_touching(intervals: IntArray, start: IntArray, end: IntArray) -> IntArray:
    """Return the numbers of the stretches that have a moment in common with a set; fastest if they are in order.

    Args:
        intervals: A set.
        start, end: Of each stretch, none of them empty, shape (k,).
    """
    found = np.empty(len(start), np.int64)
    return found[: touch(intervals, start, end, found)]


def contains(intervals: IntArray, times: IntArray) -> NDArray[np.bool_]:
    """Say for each time whether a set covers it."""
    if not len(intervals):
        return np.zeros(np.shape(times), np.bool_)
    index = np.searchsorted(intervals[:, 0], times, side="right") - 1
    return np.asarray((index >= 0) & (times < intervals[np.maximum(index, 0), 1]))


def pair_ranges(first: IntArray, after: IntArray) -> tuple[IntArray, IntArray]:
    """Write out index ranges as pairs: row ``i`` with every partner in ``[first[i], after[i])``.

    Returns:
        Row numbers and partner numbers, both of length ``sum(after - first)``.
    """
    counts = np.maximum(0, after - first)
    rows = np.repeat(np.arange(len(first)), counts)
    offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, first[rows] + offsets


@compiled
def join(start: IntArray, end: IntArray, out: IntArray) -> int:
    """Write the union of events that are ordered by start into ``out``, shape (n, 2); return its length."""
    rows = 0
    for event in range(len(start)):
        if rows and start[event] <= out[rows - 1, 1]:
            out[rows - 1, 1] = max(out[rows - 1, 1], end[event])
        else:
            out[rows, 0], out[rows, 1] = start[event], end[event]
            rows += 1
    return rows


@compiled
def meet(left: IntArray, right: IntArray, out: IntArray) -> int:
    """Write what two sets have in common into ``out``, shape (n_left + n_right, 2); return its length."""
    rows, i, k = 0, 0, 0
    while i < len(left) and k < len(right):
        start, end = max(left[i, 0], right[k, 0]), min(left[i, 1], right[k, 1])
        if start < end:
            out[rows, 0], out[rows, 1] = start, end
            rows += 1
        if left[i, 1] < right[k, 1]:
            i += 1
        else:
            k += 1
    return rows


@compiled
def leave_out(left: IntArray, right: IntArray, out: IntArray) -> int:
    """Write what a set covers and another one does not into ``out``, shape (n_left + n_right, 2); return its length."""
    rows, k = 0, 0
    for i in range(len(left)):
        start, end = left[i, 0], left[i, 1]
        while k < len(right) and right[k, 1] <= start:
            k += 1
        while k < len(right) and right[k, 0] < end:
            if start < right[k, 0]:
                out[rows, 0], out[rows, 1] = start, right[k, 0]
                rows += 1
            start = right[k, 1]
            if start >= end:
                break
            k += 1
        if start < end:
            out[rows, 0], out[rows, 1] = start, end
            rows += 1
    return rows


AHEAD = 8
"""Rows to look at one by one before bisecting: times mostly come in order."""


@compiled
def cover(intervals: IntArray, before: IntArray, times: IntArray, out: IntArray) -> None:
    """Write how much of a set lies before each time.

    Args:
        intervals: The set.
        before: Length of all before each of its rows, and of all of it, shape (n + 1,).
        times: Found by going on from the one before, so best in order.
        out: The result, shape of ``times``.
    """
    after = 0
    for k in range(len(times)):
        after = go_on(intervals, after, times[k])
        out[k] = before[after] - max(0, intervals[after - 1, 1] - times[k]) if after > 0 else 0


@compiled
def touch(intervals: IntArray, start: IntArray, end: IntArray, out: IntArray) -> int:
    """Write the numbers of the stretches that have a moment in common with a set into ``out``, shape (k,); return how many."""
    after, found = 0, 0
    for k in range(len(start)):
        after = go_on(intervals, after, start[k])
        begins_in = after > 0 and intervals[after - 1, 1] > start[k]
        if begins_in or (after < len(intervals) and intervals[after, 0] < end[k]):
            out[found] = k
            found += 1
    return found


@compiled
def go_on(intervals: IntArray, after: int, time: int) -> int:
    """Return the first row that begins later than a time, starting from the one that was found for the time before."""
    low, high = 0, len(intervals)
    if after < high and intervals[after, 0] <= time:
        low = after + 1
        while low < high and low <= after + AHEAD and intervals[low, 0] <= time:
            low += 1
        if low <= after + AHEAD:
            high = low
    elif after > 0 and intervals[after - 1, 0] <= time:
        low = high = after
    else:
        high = after
    while low < high:
        middle = (low + high) // 2
        if intervals[middle, 0] <= time:
            low = middle + 1
        else:
            high = middle
    return low
