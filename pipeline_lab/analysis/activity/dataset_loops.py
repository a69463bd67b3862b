"""Loops over a dataset inside of ``tf.function``: TensorFlow goes through the dataset, and threads of tf.data take the steps."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from pipeline_lab.analysis.activity import event_names
from pipeline_lab.analysis.activity.event_sets import union_of_named
from pipeline_lab.analysis.activity.intervals import (
    IntArray,
    as_intervals,
    contains,
    intersect,
    subtract,
    union,
    union_of,
)
from pipeline_lab.trace.schema import BoolArray, Line, Plane

_NONE: IntArray = np.empty(0, np.int64)


class DatasetLoops:
    """The loops of one host.

    Args:
        host: Its plane; None if the trace has none.
    """

    def __init__(self, host: Plane | None) -> None:
        self._is_step = _mask(host, event_names.is_step_in_loop)
        self.is_wait = _mask(host, event_names.is_wait_in_loop)
        lines = host.lines if host is not None and self._is_step.any() else ()
        self._lines = [line for line in lines if line.count_named(self._is_step)]

    @cached_property
    def steps(self) -> IntArray:
        """Moments at which steps are taken, requests for their batches included."""
        return union_of(*(union_of_named(line, self._is_step) for line in self._lines))

    @cached_property
    def waits(self) -> tuple[IntArray, IntArray, IntArray]:
        """Start, end and iterator of each request for a batch; of a loop in another one's step the inner one's alone."""
        rows = [line.rows_named(self.is_wait) for line in self._lines]
        asked = [line.start_ns[own] for line, own in zip(self._lines, rows, strict=True)]
        starts, ends, iterators = [_NONE], [_NONE], [_NONE]
        for number, line in enumerate(self._lines):
            steps = self._steps_of(line)
            others = np.sort(np.concatenate([_NONE, *asked[:number], *asked[number + 1 :]]))
            first, after = (np.searchsorted(others, edge) for edge in steps.T)
            kept = rows[number][~contains(steps[after > first], asked[number])]
            starts.append(line.start_ns[kept])
            ends.append(line.start_ns[kept] + line.duration_ns[kept])
            iterators.append(line.stats.ints(kept, "id")[0])
        return np.concatenate(starts), np.concatenate(ends), np.concatenate(iterators)

    @property
    def running(self) -> IntArray:
        """Moments from the first request to the last one of each loop: Python has called it, and waits for it."""
        start, end, iterator = self.waits
        loops, number = np.unique(iterator, return_inverse=True)
        first, last = np.full(len(loops), np.iinfo(np.int64).max), np.full(len(loops), np.iinfo(np.int64).min)
        np.minimum.at(first, number, start)
        np.maximum.at(last, number, end)
        return union(first, last)

    def computing(self, is_function: BoolArray) -> IntArray:
        """Return when the functions of steps ran: what lies in a step, and not in a request for a batch.

        Args:
            is_function: Of each name of the host, whether tf.data calls a function there.
        """
        waiting = union_of(*(union_of_named(line, self.is_wait) for line in self._lines))
        inside = (
            intersect(union_of_named(line, is_function), union_of_named(line, self._is_step)) for line in self._lines
        )
        return union_of(*(subtract(one, waiting) for one in inside))

    def _steps_of(self, line: Line) -> IntArray:
        rows = line.rows_named(self._is_step)
        rows = rows[np.argsort(line.start_ns[rows], kind="stable")]
        return as_intervals(line.start_ns[rows], line.start_ns[rows] + line.duration_ns[rows])


def _mask(host: Plane | None, matches: Callable[[str], bool]) -> BoolArray:
    return np.zeros(0, np.bool_) if host is None else host.name_mask(matches)
