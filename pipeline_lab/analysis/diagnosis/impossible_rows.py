"""Rows that no job writes: a bit that changed on a disk may leave a table whole, and its numbers wrong."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.runs.run_tables import EVALUATED, OUTPUTS, SAMPLES, STEPS
from pipeline_lab.trace.schema import BoolArray
from pipeline_lab.trace.xplane.xspace import EPOCH_NS, LATEST_EPOCH_NS
from pipeline_lab.units import NS_PER_S

LONGEST_NS = 30 * 24 * 3600 * NS_PER_S
"""No step, and no part of one, takes a month."""
SLACK_NS = NS_PER_S
"""By how much times may contradict each other: clocks inside and outside of a graph differ a little."""

Wrong = tuple[str, BoolArray]
"""Why rows are impossible, and which are, shape (n,)."""


class RowChecker:
    """Looks for impossible rows in the tables of a job, of a growing one in those that came since the last time."""

    def __init__(self) -> None:
        self._looked_at: dict[str, int] = {}
        self._found: dict[str, str] = {}

    def find(self, read: dict[str, pa.Table], files: int) -> dict[str, str]:
        """Return what is wrong, a sentence for each table that is damaged, by its name.

        Args:
            read: The tables by their names, as far as they can be read.
            files: Number of data files that the job reads; 0 where nobody knows.
        """
        for table in (STEPS, SAMPLES, EVALUATED, OUTPUTS):
            rows = read.get(table.name)
            if rows is None:
                continue
            before = self._looked_at.get(table.name, 0)
            if rows.num_rows < before:  # it is another file
                before = 0
                self._found.pop(table.name, None)
            self._looked_at[table.name] = rows.num_rows
            first = max(0, before - 1)  # a step is compared with the one before it
            if table.name in self._found or rows.num_rows == before:
                continue
            new = rows.slice(first)
            for what, wrong in _of_steps(new) if table is STEPS else _of_examples(new, files):
                if wrong.any():
                    row = first + int(wrong.argmax()) + 1
                    self._found[table.name] = (
                        f"{table.file_name} of this run is damaged: row {row:,} is impossible ({what}); restore the file, "
                        "or run the job again."
                    )
                    break
        return dict(self._found)


def _of_steps(rows: pa.Table) -> Iterator[Wrong]:
    start, away = tables.ints(rows, "start_ns"), tables.or_zero(rows, "away_ns")
    yield "the step begins in another century", (start < EPOCH_NS) | (start > LATEST_EPOCH_NS)
    since_last = np.diff(start, prepend=start[0])
    yield "the step begins before the one above it, or a month later", _is_no_length(since_last)
    known = np.where(np.arange(rows.num_rows) > 0, since_last, LONGEST_NS)
    yield "more time is noted between two steps than lies between them", _is_no_length(away) | (away > known + SLACK_NS)
    yield "the wait is negative, or lasts a month", _is_no_length(tables.or_zero(rows, "wait_ns"))
    for column in ("end_ns", "ready_ns"):
        length = np.where(tables.valid(rows, column), tables.ints(rows, column) - start, 0)
        yield "the step ends before it begins, or a month later", _is_no_length(length)


def _of_examples(rows: pa.Table, files: int) -> Iterator[Wrong]:
    file, record = tables.or_zero(rows, "file"), tables.or_zero(rows, "record")
    yield "the number of a file or record is negative", (file < 0) | (record < 0)
    if files:
        yield "the run lists no such file", file >= files


def _is_no_length(length_ns: IntArray) -> BoolArray:
    found: BoolArray = (length_ns < -SLACK_NS) | (length_ns > LONGEST_NS)
    return found
