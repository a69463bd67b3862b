"""Which iterator each wait reads, on hand-made traces; times in µs."""

import numpy as np

from pipeline_lab.analysis.activity.activity import Activity
from pipeline_lab.analysis.activity.iterators import leading, most_calls
from pipeline_lab.analysis.steps import recorded_steps
from pipeline_lab.analysis.steps.recorded_steps import Steps
from tests.support.traces import WAIT, Event, host, line, trace


def read(iterator: int, start: float, duration: float = 5) -> tuple[Event, Event, Event]:
    """Return a wait with its iterator's events inside, as TensorFlow nests them."""
    inner, outer = ("Iterator::Root::Prefetch", {"id": 99}), ("Iterator::Root", {"id": iterator})
    return (
        (inner[0], start + 1, duration - 2, inner[1]),
        (outer[0], start + 1, duration - 1, outer[1]),
        (WAIT, start, duration, {"id": round(start)}),  # the id of the call, not of the iterator
    )


def find(*events: Event) -> Steps:
    return recorded_steps.find_steps(Activity(trace(host(line("python", *events)))))


def starts_us(found: Steps) -> list[float]:
    return [start / 1000 for start in found.table.column("start_ns").to_pylist()]


def test_one_of_two_replicas_sets_the_rhythm():
    found = find(*(event for begin in (0, 100, 200) for event in (*read(7, begin), *read(8, begin + 10))))
    assert starts_us(found) == [0, 100]
    assert found.table.column("wait_ns").to_pylist() == [10_000, 10_000]  # both replicas' waits count


def test_a_marked_step_that_reads_two_replicas_is_one_step():
    marks: list[Event] = [("train", begin, 50, {"step_num": begin, "_r": 1}) for begin in (0, 100)]
    found = find(*marks, *(event for begin in (0, 100) for event in (*read(7, begin), *read(8, begin + 10))))
    assert (found.count, found.steps_per_marker) == (2, 1.0)


def test_iterators_of_one_epoch_after_another_all_set_the_rhythm():
    found = find(*(event for begin, epoch in ((0, 1), (100, 1), (200, 2), (300, 2)) for event in read(epoch, begin)))
    assert starts_us(found) == [0, 100, 200]


def test_waits_that_name_no_iterator_count_as_one():
    assert starts_us(find((WAIT, 0, 5), (WAIT, 100, 5), (WAIT, 200, 5))) == [0, 100]


def test_the_iterator_called_most_often_leads():
    iterator, start = np.array([1, 2, 2, 1, 2, 3]), np.array([0, 10, 20, 30, 40, 50])
    assert leading(iterator, start).tolist() == [False, True, True, False, True, True]


def test_the_busiest_iterator_of_a_span_counts_its_steps():
    spans = np.array([[0, 100], [100, 200], [300, 400]])
    iterator, end = np.array([1, 1, 2, 1, 2, 2]), np.array([10, 100, 50, 150, 160, 250])
    assert most_calls(iterator, end, spans).tolist() == [2, 1, 0]
