"""What the making and the ends of iterators take of a job's time."""

import pyarrow as pa
import pytest

from pipeline_lab.analysis.declaring.job_events import JobEvents
from pipeline_lab.analysis.steps.iterator_ends import measure_ends, measure_starts
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_events import EvaluationEvent, IteratorEndEvent, IteratorStartEvent
from pipeline_lab.runs.run_tables import STEPS
from pipeline_lab.units import NS_PER_MS as MS

BEGUN_NS = 10**15


def _steps(count: int, warmup: int) -> pa.Table:
    """Return steps of 100 ms."""
    nothing = dict.fromkeys(STEPS.schema.names)
    rows = [
        nothing
        | {
            "step": n,
            "warmup": n < warmup,
            "start_ns": BEGUN_NS + n * 100 * MS,
            "end_ns": BEGUN_NS + (n + 1) * 100 * MS,
        }
        for n in range(count)
    ]
    return pa.Table.from_pylist(rows, schema=STEPS.schema)


def _end(from_ms: int, to_ms: int) -> IteratorEndEvent:
    return IteratorEndEvent(BEGUN_NS + from_ms * MS, BEGUN_NS + to_ms * MS)


def test_ends_between_the_measured_steps_count() -> None:
    ends = [_end(50, 150), _end(300, 350), _end(500, 600), _end(1200, 1500)]
    found = measure_ends(JobEvents(ends), _steps(12, warmup=2))
    assert (found.count, found.total_ns, found.longest_ns, found.job_ns) == (2, 150 * MS, 100 * MS, 1000 * MS)
    assert found.percent == pytest.approx(15)


def test_ends_within_an_evaluation_are_its_own() -> None:
    # one validation gives up the iterator of the one before at its beginning; the training's own ends 50 ms after it
    began, ended = BEGUN_NS + 400 * MS, BEGUN_NS + 600 * MS
    evaluation = EvaluationEvent(0, 4, began, ended, 90 * MS, 3, None, None)
    found = measure_ends(JobEvents([_end(400, 480), _end(590, 650), evaluation]), _steps(12, warmup=2))
    assert (found.count, found.total_ns) == (1, 50 * MS)


def test_iterators_that_are_made_between_the_measured_steps_count() -> None:
    times = [(50, 60), (300, 310), (500, 530), (640, 650)]  # before, between twice, in an evaluation
    made = [IteratorStartEvent(BEGUN_NS + begun * MS, BEGUN_NS + ended * MS) for begun, ended in times]
    evaluation = EvaluationEvent(0, 4, BEGUN_NS + 600 * MS, BEGUN_NS + 700 * MS, 90 * MS, 3, None, None)
    found = measure_starts(JobEvents([*made, _end(700, 800), evaluation]), _steps(12, warmup=2))
    assert (found.count, found.total_ns, found.longest_ns, found.job_ns) == (2, 40 * MS, 30 * MS, 1000 * MS)
    with pytest.raises(TraceIncompleteError, match="No iterator that took time to make"):
        measure_starts(JobEvents([_end(700, 800)]), _steps(12, warmup=2))


def test_a_job_without_ends_that_took_time_has_no_number() -> None:
    for ends, steps in (([], _steps(3, 0)), ([_end(0, 50)], _steps(3, 3)), ([_end(0, 50)], STEPS.schema.empty_table())):
        with pytest.raises(TraceIncompleteError, match="No end of an iterator"):
            measure_ends(JobEvents(ends), steps)
