"""What the making and the ends of iterators take of a job's time."""

from collections.abc import Mapping
from types import MappingProxyType

import pyarrow as pa
import pytest

from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.job_events import JobEvents
from pipeline_lab.analysis.steps.iterator_ends import measure_ends, measure_starts
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_events import EvaluationEvent, IteratorEndEvent, IteratorStartEvent
from pipeline_lab.runs.run_tables import STEPS
from pipeline_lab.units import NS_PER_MS as MS

BEGUN_NS = 10**15


def _steps(count: int, warmup: int, *, away: Mapping[int, int] = MappingProxyType({}), passes: int = 2) -> pa.Table:
    """Return steps of 40 ms, a new one every 100 ms; so many of them make a pass.

    Args:
        count: Of the steps.
        warmup: How many of them are warm-up.
        away: What of the time before a step belongs to no step, ms.
        passes: Steps of a pass.
    """
    nothing = dict.fromkeys(STEPS.schema.names)
    rows = [
        nothing
        | {
            "step": n,
            "warmup": n < warmup,
            "start_ns": BEGUN_NS + n * 100 * MS,
            "wait_ns": 10 * MS,
            "end_ns": BEGUN_NS + n * 100 * MS + 40 * MS,
            "away_ns": away.get(n, 0) * MS,
            "epoch": n // passes,
        }
        for n in range(count)
    ]
    return pa.Table.from_pylist(rows, schema=STEPS.schema)


def _end(from_ms: int, to_ms: int) -> IteratorEndEvent:
    return IteratorEndEvent(BEGUN_NS + from_ms * MS, BEGUN_NS + to_ms * MS)


def test_ends_between_the_measured_epochs_count() -> None:
    # passes end at 340, 540, 740 … ms, their last batches come at 310, 510 …; the ends at 50 and 1,200 ms are before and after,
    # that at 450 ms is within a pass, and that at 530 ms of one that was broken off before its last step returned
    ends = [_end(50, 90), _end(340, 390), _end(450, 490), _end(530, 620), _end(1200, 1500)]
    found = measure_ends(JobEvents(ends), _steps(12, warmup=2))
    assert (found.count, found.total_ns, found.longest_ns, found.job_ns) == (2, 120 * MS, 70 * MS, 940 * MS)
    assert found.percent == pytest.approx(100 * 120 / 940)
    of_no_pass = tables.replace_column(_steps(12, warmup=2), "epoch", None)
    assert measure_ends(JobEvents(ends), of_no_pass).count == 3, "between any steps"


def test_ends_within_an_evaluation_are_its_own() -> None:
    # one validation gives up the iterator of the one before at its beginning; the training's own ends after it
    began, ended = BEGUN_NS + 345 * MS, BEGUN_NS + 380 * MS
    evaluation = EvaluationEvent(0, 4, began, ended, 20 * MS, 3, None, None)
    found = measure_ends(JobEvents([_end(345, 360), _end(375, 395), evaluation]), _steps(12, 2, away={4: 35}))
    assert (found.count, found.total_ns) == (1, 15 * MS)


def test_what_belongs_to_no_step_is_not_lost_between_epochs() -> None:
    # between two calls of fit, 55 of 60 ms are nobody's: what is noted there takes no more than what is left
    ends = JobEvents([_end(342, 395), _end(742, 752)])
    assert measure_ends(ends, _steps(12, 2, away={4: 55})).total_ns == 15 * MS
    with pytest.raises(TraceIncompleteError, match="No end of an iterator"):
        measure_ends(ends, _steps(12, 2, away={4: 60, 8: 60}))


def test_no_end_takes_less_than_no_time_where_a_clock_was_set_back() -> None:
    steps = _steps(12, warmup=2)
    start_ns = tables.ints(steps, "start_ns").copy()
    start_ns[4:8] -= 300 * MS  # step 4 seems to begin at 100 ms, before step 3 had its batch
    found = measure_ends(
        JobEvents([_end(120, 180), _end(740, 752)]), tables.replace_column(steps, "start_ns", start_ns)
    )
    assert (found.count, found.total_ns, found.longest_ns) == (1, 12 * MS, 12 * MS)


def test_iterators_that_are_made_between_the_measured_epochs_count() -> None:
    made = [IteratorStartEvent(BEGUN_NS + t * MS, BEGUN_NS + (t + 8) * MS) for t in (90, 390, 590)]
    found = measure_starts(JobEvents([*made, _end(740, 750)]), _steps(12, warmup=2))
    assert (found.count, found.total_ns, found.longest_ns, found.job_ns) == (2, 16 * MS, 8 * MS, 940 * MS)
    with pytest.raises(TraceIncompleteError, match="No iterator that took time to make"):
        measure_starts(JobEvents([_end(740, 750)]), _steps(12, warmup=2))


def test_a_job_without_ends_that_took_time_has_no_number() -> None:
    for ends, steps in (([], _steps(3, 0)), ([_end(0, 50)], _steps(3, 3)), ([_end(0, 50)], STEPS.schema.empty_table())):
        with pytest.raises(TraceIncompleteError, match="No end of an iterator"):
            measure_ends(JobEvents(ends), steps)
