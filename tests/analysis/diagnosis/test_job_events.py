"""Events of a job that goes on, by kind."""

import pytest

from pipeline_lab.analysis.declaring.job_events import MOST_CHUNKS, JobEvents
from pipeline_lab.runs.run_events import CheckpointEvent, EvaluationEvent, NoteEvent, WindowEvent


def window(number: int, cost_ns: int | None = None) -> WindowEvent:
    return WindowEvent(f"w{number}", None, None, 10 * number, 10 * number + 5, 10 * number + 7, 1, cost_ns)


def test_events_of_one_kind_stay_in_their_order() -> None:
    first, second = CheckpointEvent(5, 6), CheckpointEvent(1, 2)
    events = JobEvents([first, NoteEvent("Mind this."), second])
    assert events.of(CheckpointEvent) == [first, second]
    assert not events.of(EvaluationEvent)


def test_what_was_made_of_events_grows_with_them() -> None:
    events = JobEvents([window(0, 3), window(1)])
    before = events.column(WindowEvent, "start_cost_ns")
    assert events.spans(WindowEvent, "stopped_ns", "flushed_ns").tolist() == [[5, 7], [15, 17]]
    events.add([NoteEvent("Mind this."), window(2, 4)])
    grown = events.column(WindowEvent, "start_cost_ns")
    assert (grown.is_known.tolist(), grown.known.tolist()) == ([True, False, True], [3, 4])
    assert (before.is_known.tolist(), before.known.tolist()) == ([True, False], [3])
    assert events.column(WindowEvent, "started_ns").values.tolist() == [0, 10, 20]
    assert events.spans(WindowEvent, "stopped_ns", "flushed_ns").tolist() == [[5, 7], [15, 17], [25, 27]]


def test_texts_grow_as_columns_do_and_lie_in_few_pieces() -> None:
    events = JobEvents([window(0)])
    before = events.texts(WindowEvent, "name")
    for number in range(1, 2 * MOST_CHUNKS):
        events.add([window(number)])
        assert events.texts(WindowEvent, "name").to_pylist() == [f"w{each}" for each in range(number + 1)]
        assert events.texts(WindowEvent, "name").num_chunks < MOST_CHUNKS
    assert before.to_pylist() == ["w0"]


@pytest.mark.parametrize(("events", "spans"), [([], []), ([CheckpointEvent(5, 8), CheckpointEvent(1, 6)], [[1, 8]])])
def test_spans_are_a_set(events: list[CheckpointEvent], spans: list[list[int]]) -> None:
    assert JobEvents(events).spans(CheckpointEvent).tolist() == spans
