"""Find the steps that took far longer than their neighbors, and what they hold more of.

A step is an outlier when it exceeds its level, the median of the steps around it, by more than :data:`MAD_FACTOR`
standard deviations (estimated by the median absolute deviation from the level, which outliers do not inflate) and by
at least :data:`LEAST_EXCESS` of the level. Its cause is the part that exceeds its usual length (the median of the
steps that are no outliers) by most.
"""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.activity.intervals import IntArray, as_intervals, length_within
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.columns import BoolArray, FloatArray
from pipeline_lab.analysis.declaring.declaration import (
    Analysis,
    Document,
    Found,
    JobView,
    PerJob,
    longest_rows,
    times_to_ms,
    to_ms,
)
from pipeline_lab.analysis.steps.checkpoints import checkpoint_spans
from pipeline_lab.analysis.steps.iterator_ends import change_spans
from pipeline_lab.analysis.steps.job_steps import NO_JOB_STEPS, flushes
from pipeline_lab.analysis.steps.local_level import local_level
from pipeline_lab.analysis.steps.step_breakdown import PARTS, StepBreakdown
from pipeline_lab.analysis.steps.step_rows import StepRows, divide_time, pick
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError

MAD_FACTOR = 6.0
LEAST_EXCESS = 0.3
FEWEST = 10
"""Steps below which nothing is said."""

SIGMA_PER_MAD = 1.4826
BUSIER_PERCENT = 50.0
"""How much more than usual other programs take of the processor, 100 for one core, to be blamed for a step."""

OUTLIER_TABLE = pa.schema(
    [
        ("host", pa.string()),
        ("step", pa.int64()),
        ("start_ns", pa.int64()),
        ("length_ns", pa.int64()),
        ("level_ns", pa.int64()),  # the median of the steps around it
        (
            "cause",
            pa.string(),
        ),  # a part of the step without its unit, ``compute_or_python``, ``flush`` or ``other_programs``
        ("excess_ns", pa.int64()),  # what the cause explains
    ]
)
"""One row per outlier."""

NO_SPANS = np.empty((0, 2), np.int64)
TOO_FEW = f"Outliers are looked for among at least {FEWEST} steps after the warm-up; record more steps."


FindLevels = Callable[[IntArray], FloatArray]
"""Returns the level of each of some consecutive steps by their lengths, ns."""


@dataclass(frozen=True, eq=False)
class OutlierSteps:
    """The steps that took far longer than their neighbors.

    Attributes:
        basis: Which steps were looked at: ``all steps`` of the job, or the ``recorded steps``.
        looked_at: How many they are, the warm-up left out.
        table: One row per outlier, :data:`OUTLIER_TABLE`, ordered by start.
        steps_ns: Length of all steps that were looked at.
    """

    basis: str
    looked_at: int
    table: pa.Table
    steps_ns: int

    @property
    def count(self) -> int:
        return int(self.table.num_rows)

    @property
    def excess_ns(self) -> int:
        """How much shorter the steps would be together if every outlier took as long as its neighbors."""
        return int((tables.ints(self.table, "length_ns") - tables.ints(self.table, "level_ns")).sum())


def find_in_job(
    steps: pa.Table,
    resources: pa.Table,
    writing: IntArray,
    origin_ns: int,
    *,
    saving: IntArray = NO_SPANS,
    ending: IntArray = NO_SPANS,
    rows: StepRows | None = None,
    find_levels: FindLevels = local_level,
) -> OutlierSteps:
    """Look at every step of a run.

    Args:
        steps: Of schema ``runs.run_tables.STEPS``.
        resources: Of schema ``runs.run_tables.RESOURCES``.
        writing: When windows were written, a set, ns since the epoch.
        origin_ns: Zero of the diagnosis' axis, ns since the epoch.
        saving: When checkpoints were written, a set, ns since the epoch.
        ending: When iterators were made and ended, a set, ns since the epoch.
        rows: What :func:`divide_time` returned for these steps, where it was called before.
        find_levels: Finds the level of each step: for a job that goes on, one that computes only those of its new steps.

    Raises:
        TraceIncompleteError: There are too few steps.
    """
    rows = rows or divide_time(steps)
    start, length = rows.start_ns, rows.step_ns
    parts = {"input_wait": rows.wait_ns}
    if rows.is_divided.all():
        parts |= {"compute": rows.compute_ns, "python": rows.between_ns}
    else:
        parts["compute_or_python"] = rows.compute_ns + rows.between_ns
    steady, step = ~tables.bools(steps, "warmup"), tables.ints(steps, "step")
    found = _find(length, parts, steady, find_levels, host="", step=step, start=start)
    places = np.searchsorted(start, tables.ints(found.table, "start_ns"))
    spans = as_intervals(start[places], start[places] + length[places])
    flushed = length_within(writing, spans) > (spans[:, 1] - spans[:, 0]) / 2
    busier = _busier(resources, spans)
    half_ns = tables.ints(found.table, "excess_ns") / 2
    known = {
        "checkpoint": length_within(saving, spans) > half_ns,
        "iterator_end": length_within(ending, spans) > half_ns,
        "other_programs": busier,
        "flush": flushed & np.array([one != "input_wait" for one in found.table.column("cause").to_pylist()], np.bool_),
    }
    cause = [
        next((name for name, holds in known.items() if holds[row]), one)
        for row, one in enumerate(found.table.column("cause").to_pylist())
    ]
    columns = {name: tables.ints(found.table, name) for name in ("step", "length_ns", "level_ns", "excess_ns")}
    table = tables.build(
        OUTLIER_TABLE, len(places), host="", start_ns=start[places] - origin_ns, cause=cause, **columns
    )
    return OutlierSteps("all steps", found.looked_at, table, found.steps_ns)


def find_in_recorded(breakdown: StepBreakdown) -> OutlierSteps:
    """Look at the recorded steps of every host; the first step of a window may hold part of the one before it.

    Raises:
        TraceIncompleteError: There are too few steps.
    """
    table = breakdown.table
    hosts, number = tables.name_numbers(table, ["host"])
    found = []
    for index, (host,) in enumerate(hosts):
        rows = tables.take(table, np.flatnonzero(number == index))
        spans = tables.intervals(rows)
        parts = {part.removesuffix("_ns"): tables.ints(rows, part) for part in PARTS}
        length = spans[:, 1] - spans[:, 0]
        if len(length) >= FEWEST:
            steady = np.ones(len(length), np.bool_)
            step = tables.ints(rows, "step")
            found.append(_find(length, parts, steady, local_level, host=host, step=step, start=spans[:, 0]))
    if not found:
        raise TraceIncompleteError(TOO_FEW)
    return OutlierSteps(
        "recorded steps",
        sum(each.looked_at for each in found),
        tables.concat(OUTLIER_TABLE, [each.table for each in found]),
        sum(each.steps_ns for each in found),
    )


def is_outlier(length: IntArray, level: FloatArray) -> BoolArray:
    """Say which steps exceed their level by far, shape (n,).

    Args:
        length: Of consecutive steps, shape (n,), ns.
        level: Of each; see :func:`local_level`.
    """
    excess = length - level
    spread = SIGMA_PER_MAD * float(np.median(np.abs(excess)))
    return np.asarray(excess > np.maximum(MAD_FACTOR * spread, LEAST_EXCESS * level))


def _find(
    length: IntArray,
    parts: Mapping[str, IntArray],
    steady: BoolArray,
    find_levels: FindLevels,
    *,
    host: str,
    step: IntArray,
    start: IntArray,
) -> OutlierSteps:
    if steady.sum() < FEWEST:
        raise TraceIncompleteError(TOO_FEW)
    names = list(parts)
    rows = pick(steady)
    length, step, start = length[rows], step[rows], start[rows]
    level = find_levels(length)
    outlier = is_outlier(length, level)
    if not outlier.any():
        return OutlierSteps("", len(length), tables.empty(OUTLIER_TABLE), int(length.sum()))
    excess = np.stack([part[rows][outlier] - np.median(part[rows][~outlier]) for part in parts.values()])
    largest = np.argmax(excess, axis=0)
    table = tables.build(
        OUTLIER_TABLE,
        len(largest),
        host=host,
        step=step[outlier],
        start_ns=start[outlier],
        length_ns=length[outlier],
        level_ns=level[outlier].astype(np.int64),
        cause=[names[index] for index in largest.tolist()],
        excess_ns=excess[largest, np.arange(len(largest))].astype(np.int64),
    )
    return OutlierSteps("", len(length), table, int(length.sum()))


def _busier(resources: pa.Table, spans: IntArray) -> BoolArray:
    """Say during which spans other programs took far more of the processor than usual."""
    other = tables.floats(resources, "other_cpu_percent")
    known = np.isfinite(other)
    if not known.any() or not len(spans):
        return np.zeros(len(spans), np.bool_)
    time, other = tables.ints(resources, "time_ns")[known], other[known]
    after = np.minimum(np.searchsorted(time, spans[:, 1]), len(time) - 1)  # a sample speaks for the time before it
    return np.asarray(other[after] > np.median(other) + BUSIER_PERCENT)


def _measure(job: JobView) -> OutlierSteps:
    found = job.tables
    return find_in_job(
        found.steps,
        found.resources,
        flushes(found.events),
        job.origin_ns,
        saving=checkpoint_spans(found.events),
        ending=change_spans(found.events),
        rows=found.step_rows,
        find_levels=found.levels.find,
    )


def _among_recorded(found: Found) -> OutlierSteps:
    return find_in_recorded(found.need(StepBreakdown, "step_breakdown"))


def _to_json(found: OutlierSteps) -> Document:
    longest = longest_rows(found.table, tables.ints(found.table, "length_ns"))
    return {
        "basis": found.basis,
        "looked_at": found.looked_at,
        "count": found.count,
        "excess_ms": to_ms(found.excess_ns),
        "longest": [times_to_ms(row) for row in longest],
    }


OUTLIER_STEPS = Analysis(
    OutlierSteps, per_job=PerJob(_measure, NO_JOB_STEPS), of_results=_among_recorded, to_json=_to_json
)
