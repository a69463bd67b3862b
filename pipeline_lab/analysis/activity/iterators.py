"""Tell iterators apart, so that one step which reads several of them stays one step.

MirroredStrategy reads one iterator per replica in every step. A wait event does not name its iterator, but inside it,
on the same thread, runs the outermost ``Iterator::…`` event, whose ``id`` is the iterator's own.
"""

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.event_names import ITERATOR
from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.trace.schema import Line

UNKNOWN = 0
"""Stands for the iterator of a wait without an iterator event inside."""


ON_DEVICE = f"{ITERATOR}Prefetch"
"""Name of an iterator that holds elements which are on a device (``prefetch_to_device``, one replica's of a strategy): it has
no root of its own, but a generator that copies from an iterator on the host."""
COPIES_TO_DEVICE = f"{ON_DEVICE}::Generator"


def asked_of(name: str) -> str | None:
    """Return the stat that tells which iterator an outermost event of one belongs to, None for other events."""
    return "id" if name.startswith(ITERATOR) and name.count("::") == 1 else None


def iterators_read(line: Line, waits: IntArray, is_iterator: NDArray[np.bool_]) -> tuple[IntArray, NDArray[np.int32]]:
    """Return id and name (index in the plane) of the iterator that each wait of a thread reads, shape (n,) each.

    The name is -1 where it is not known.

    Args:
        line: The thread.
        waits: Row numbers of its waits, shape (n,).
        is_iterator: Of each name of the plane, whether it is an iterator's.
    """
    read, name = np.full(len(waits), UNKNOWN, np.int64), np.full(len(waits), -1, np.int32)
    rows = line.rows_named(is_iterator) if len(waits) else waits
    if not len(rows):
        return read, name
    starts, lengths = line.start_ns[rows], line.duration_ns[rows]
    if not ((starts[1:] > starts[:-1]) | ((starts[1:] == starts[:-1]) & (lengths[1:] <= lengths[:-1]))).all():
        order = np.lexsort((-lengths, starts))  # the outer of two comes first
        rows, starts = rows[order], starts[order]
    first = np.searchsorted(starts, line.start_ns[waits])
    inner = rows[np.minimum(first, len(rows) - 1)]
    start = line.start_ns[waits]
    inside = (line.start_ns[inner] >= start) & (line.start_ns[inner] < start + line.duration_ns[waits])
    ids, known = line.stats.ints(inner, "id")
    return np.where(inside & known, ids, read), np.where(inside, line.name_index[inner], name)


def leading(iterator: IntArray, start: IntArray) -> NDArray[np.bool_]:
    """Say which calls set the rhythm: those of iterators that do not run beside one that is called more often.

    Iterators one after another (epochs) all count; of those that take turns (replicas), one does.

    Args:
        iterator: The iterator of each call, shape (n,).
        start: Start of each call, ascending, shape (n,), ns.
    """
    if not len(start):
        return np.zeros(0, np.bool_)
    _, rank, counts = np.unique(iterator, return_inverse=True, return_counts=True)
    begin, end = np.full(len(counts), start[-1]), np.full(len(counts), start[0])
    np.minimum.at(begin, rank, start)
    np.maximum.at(end, rank, start)
    kept: list[tuple[int, int, int]] = []
    for number in np.lexsort((begin, -counts)).tolist():
        span = (int(begin[number]), int(end[number]), number)
        place = bisect_left(kept, span)
        is_clear = (place == 0 or kept[place - 1][1] < span[0]) and (place == len(kept) or span[1] < kept[place][0])
        if is_clear:
            kept.insert(place, span)
    return np.isin(rank, [number for _, _, number in kept])


def most_calls(iterator: IntArray, end: IntArray, spans: IntArray) -> IntArray:
    """Return how often the busiest iterator of each span was called, shape (n_spans,).

    Args:
        iterator: The iterator of each call, shape (n,).
        end: End of each call, shape (n,), ns; it says in which span the call counts.
        spans: Ordered, apart from each other, shape (n_spans, 2), ns.
    """
    most = np.zeros(len(spans), np.int64)
    index = np.searchsorted(spans[:, 1], end)
    inside = index < len(spans)
    inside[inside] = end[inside] > spans[index[inside], 0]
    numbers, number = np.unique(iterator[inside], return_inverse=True)
    pairs, counts = np.unique(index[inside] * len(numbers) + number, return_counts=True)
    np.maximum.at(most, pairs // max(1, len(numbers)), counts)
    return most
