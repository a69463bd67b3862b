"""What a job reported while it worked, by kind: analyses ask for one kind at a time, of which a long run holds thousands."""

from collections.abc import Iterable, Sequence
from typing import TypeVar, cast

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.activity.intervals import IntArray, union
from pipeline_lab.analysis.declaring.columns import Partly, strings
from pipeline_lab.runs.run_events import Event

Kind = TypeVar("Kind", bound=Event)

MOST_CHUNKS = 8
"""Columns of new texts that are left as they came; then all are copied once, rather than with each window."""


class JobEvents:
    """Events of a job, in the order in which they were written.

    Args:
        events: All of them.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._of_kind: dict[type[Event], list[Event]] = {}
        self._columns: dict[tuple[type[Event], str], Partly] = {}
        self._texts: dict[tuple[type[Event], str], pa.ChunkedArray] = {}
        self._spans: dict[tuple[type[Event], str, str], IntArray] = {}
        self.add(events)

    def add(self, events: Iterable[Event]) -> None:
        """Put later events behind these; columns and texts that were asked for before only grow by them."""
        self._spans.clear()
        for event in events:
            self._of_kind.setdefault(type(event), []).append(event)

    def of(self, kind: type[Kind]) -> Sequence[Kind]:
        """Return the events of one kind."""
        return cast("Sequence[Kind]", self._of_kind.get(kind, ()))

    def column(self, kind: type[Event], field: str) -> Partly:
        """Return one whole number of each event of a kind, shape (n,), and for which it is known."""
        known = self._columns.get((kind, field))
        new = [getattr(event, field) for event in self.of(kind)[0 if known is None else len(known.values) :]]
        if new or known is None:
            values = np.array([0 if value is None else value for value in new], np.int64)
            is_known = np.array([value is not None for value in new], np.bool_)
            if known is not None:
                values, is_known = np.append(known.values, values), np.append(known.is_known, is_known)
            known = self._columns[kind, field] = Partly(values, is_known)
        return known

    def texts(self, kind: type[Event], field: str) -> pa.ChunkedArray:
        """Return a text of each event of a kind, shape (n,)."""
        known = self._texts.get((kind, field), pa.chunked_array([], pa.string()))
        new = [getattr(event, field) for event in self.of(kind)[len(known) :]]
        if new:
            chunks = [*known.chunks, strings(new)]
            whole = pa.chunked_array(chunks)
            known = whole if len(chunks) < MOST_CHUNKS else pa.chunked_array([whole.combine_chunks()])
            self._texts[kind, field] = known
        return known

    def spans(self, kind: type[Event], begin: str = "started_ns", end: str = "ended_ns") -> IntArray:
        """Return when something lasted that events of a kind tell of, as a set of intervals, ns since the epoch."""
        if (kind, begin, end) not in self._spans:
            self._spans[kind, begin, end] = union(self.column(kind, begin).values, self.column(kind, end).values)
        return self._spans[kind, begin, end]
