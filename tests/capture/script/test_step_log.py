"""Which of a script's loops trains, and what its rows say, from notes as the hooks make them; a note's times are in ms."""

from collections import deque
from pathlib import Path
from typing import Any

import pytest

from pipeline_lab.capture.script.step_log import ADOPT_NS, StepLog
from pipeline_lab.capture.script.step_notes import (
    Called,
    Ended,
    Evaluated,
    Fed,
    Gaps,
    GivenUp,
    Made,
    Note,
    Pass,
    Predicted,
    Role,
    Saved,
    Seen,
    Took,
    refer_to,
    sort_notes,
)
from pipeline_lab.runs.run_events import (
    CheckpointEvent,
    EvaluationEvent,
    IteratorEndEvent,
    IteratorStartEvent,
    NoteEvent,
    OwnBatchesEvent,
    PredictEvent,
    read_events,
)
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import STEPS, read_table
from pipeline_lab.units import NS_PER_MS as MS
from pipeline_lab.worker.note.event_log import EventLog
from pipeline_lab.worker.record.window_recorder import Window

SHIFT_NS = 10**15


class Script:
    """A script that takes batches; its clock stands at :attr:`ms`."""

    def __init__(self, tmp_path: Path) -> None:
        self.own = RunFolder(tmp_path)
        self.windows: list[Window] = []
        self.gaps: Gaps | None = None
        self.log = StepLog(self.own, EventLog(self.own.events), SHIFT_NS, lambda: self.windows, lambda _: self.gaps)
        self.ms = 0

    def take(self, of: Pass, wait_ms: int, compute_ms: int) -> None:
        arrived = self.ms + wait_ms
        self.log.notes.append(Took(of, self.ms * MS, arrived * MS, 4))
        self.ms = arrived + compute_ms

    def end(self, of: Pass, wait_ms: int = 0) -> None:
        self.log.notes.append(Ended(of, self.ms * MS, (self.ms + wait_ms) * MS))
        self.ms += wait_ms

    def call(self, of: Pass, length_ms: int, python_ms: int, steps: int = 1, *, is_first: bool = False) -> None:
        self.log.notes.append(Called(of, self.ms * MS, (self.ms + length_ms) * MS, steps, is_first))
        self.ms += length_ms + python_ms

    def drain(self) -> None:
        self.log.drain(self.ms * MS)

    def rows(self) -> list[dict[str, Any]]:
        self.log.close(self.ms * MS)
        return read_table(self.own.steps, STEPS).to_pylist()

    def evaluations(self) -> list[EvaluationEvent]:
        return [event for event in read_events(self.own.events) if isinstance(event, EvaluationEvent)]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


def _training(stream: str = "train", made: Made | None = None) -> Pass:
    return Pass(stream, has_gradients=True, made=made)


def _lengths_ms(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(row["wait_ns"] // MS, (row["end_ns"] - row["start_ns"]) // MS) for row in rows]


def test_a_step_lasts_from_its_request_to_the_next_one(script: Script) -> None:
    epoch = _training()
    for wait, compute in ((30, 5), (2, 8), (3, 7)):
        script.take(epoch, wait, compute)
    script.end(epoch)
    rows = script.rows()
    assert _lengths_ms(rows) == [(30, 35), (2, 10), (3, 10)]
    assert rows[0]["start_ns"] == SHIFT_NS
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert {row["examples"] for row in rows} == {4}


def test_a_loop_is_in_its_first_step_until_it_asks_for_the_second_batch(script: Script) -> None:
    told, epoch = [script.log.is_in_first_step], _training()
    for _ in range(3):
        script.take(epoch, 2, 8)
        script.drain()
        told.append(script.log.is_in_first_step)
    assert told == [False, True, False, False]
    assert len(script.rows()) == 2, "the last one has no end"


def test_epochs_that_are_over_before_anybody_looks_are_timed_too(script: Script) -> None:
    class Gone:
        """An iterator that the script does not keep."""

    for _ in range(2):
        iterator = Gone()
        epoch = Pass("fit", Role.FIT, iterator=refer_to(iterator))
        for _ in range(3):
            script.call(epoch, length_ms=8, python_ms=2)
        script.end(epoch)
        del iterator
    script.drain()
    assert [row["epoch"] for row in script.rows()] == [0, 0, 0, 1, 1, 1]


def test_a_pass_over_other_data_is_a_validation_and_no_step(script: Script) -> None:
    for _ in range(2):
        epoch, validation = _training(), Pass("validation")
        for _ in range(3):
            script.take(epoch, 1, 9)
        script.end(epoch)
        for _ in range(2):
            script.take(validation, 40, 5)
        script.end(validation, 10)
    rows = script.rows()
    assert _lengths_ms(rows) == [(1, 10)] * 6, "63 ms where 10 is true, if validation counts as training"
    assert [row["epoch"] for row in rows] == [0, 0, 0, 1, 1, 1]
    assert [row["away_ns"] // MS for row in rows] == [0, 0, 0, 100, 0, 0]
    found = script.evaluations()
    assert [(each.steps, each.batches, each.first_batch_ns // MS) for each in found] == [(3, 2, 40), (6, 2, 40)]


def test_what_was_read_before_the_training_is_no_step(script: Script) -> None:
    sample = Pass("a look at the data")
    for _ in range(30):
        script.take(sample, 400, 0)
        script.drain()
    epoch = Pass("train")
    script.take(epoch, 1, 9)
    script.drain()  # the first step is traced now
    epoch.has_gradients = True
    script.take(epoch, 1, 9)
    script.end(epoch)
    rows = script.rows()
    assert _lengths_ms(rows) == [(1, 10)] * 2


def test_a_loop_without_gradients_stands_for_the_training_where_nothing_else_trains(script: Script) -> None:
    epoch = Pass("predictions")
    for _ in range(40):
        script.take(epoch, 10, ADOPT_NS // MS // 30)
        script.drain()
    assert script.log.step_ns, "while it runs"
    assert len(script.rows()) == 39, "the last one's end is not known"


def test_a_later_phase_that_traces_nothing_anew_is_training_too(script: Script) -> None:
    for stream, has_gradients, steps in (("first", True, 20), ("second", False, 80)):
        epoch = Pass(stream, has_gradients=has_gradients)
        for _ in range(steps):
            script.take(epoch, 1, 9)
        script.end(epoch)
    assert len(script.rows()) == 100


def test_a_loop_that_is_known_to_take_no_gradients_is_validation_however_long(script: Script) -> None:
    for _ in range(2):
        for stream, has_gradients, steps in (("first", True, 20), ("second", False, 200)):
            of = Pass(stream, has_gradients=has_gradients, knows_gradients=True)
            for _ in range(steps):
                script.take(of, 1, 9)
            script.end(of)
    assert len(script.rows()) == 40
    assert [found.batches for found in script.evaluations()] == [200, 200]


def test_two_datasets_read_in_turn_make_one_step(script: Script) -> None:
    first, second = Pass("images"), _training("labels")
    for _ in range(3):
        script.take(first, 20, 0)
        script.take(second, 5, 15)
    script.end(second)
    assert _lengths_ms(script.rows())[1:] == [(25, 40)] * 2


def test_waits_inside_a_graph_come_from_what_tf_data_saw_between_requests(script: Script) -> None:
    iterator = object()
    epoch = Pass("fit", Role.FIT, examples=16, iterator=lambda: iterator)
    for _ in range(5):
        script.call(epoch, length_ms=30, python_ms=10)
    script.log.notes.append(Ended(epoch, script.ms * MS, script.ms * MS))
    script.log.notes.append(Seen(epoch, script.ms * MS, script.ms * MS, Gaps(5, [14 * MS] * 5)))
    rows = script.rows()
    assert [row["wait_ns"] for row in rows][:1] == [None], "the first call traced its function too"
    assert _lengths_ms(rows[1:]) == [(26, 30)] * 4
    assert {row["examples"] for row in rows} == {16}


@pytest.mark.parametrize("is_waiting", [False, True])
def test_the_last_hundred_times_are_told_apart_though_a_request_may_be_under_way(
    script: Script, is_waiting: bool
) -> None:
    iterator = object()
    epoch = Pass("fit", Role.FIT, iterator=lambda: iterator)
    waits = [10, 40, 5, 80] * 60
    for wait in waits:
        script.call(epoch, length_ms=wait + 4, python_ms=90 - wait)
    between = [(94 - wait) * MS for wait in waits]
    script.gaps = Gaps(240, between[140:]) if is_waiting else Gaps(240, between[139:239])
    rows = script.rows()
    assert [row["wait_ns"] // MS for row in rows[141:239]] == waits[141:239]


def test_steps_of_one_execution_share_its_time(script: Script) -> None:
    epoch = Pass("fit", Role.FIT, iterator=None)
    for _ in range(2):
        script.call(epoch, length_ms=40, python_ms=0, steps=4)
    rows = script.rows()
    assert [(row["end_ns"] - row["start_ns"]) // MS for row in rows] == [10] * 8
    assert {row["wait_ns"] for row in rows} == {None}, "not measured is not zero"


def test_keras_validation_is_taken_out_of_the_time_between_epochs(script: Script) -> None:
    epoch, validation = Pass("fit", Role.FIT), Pass("evaluate", Role.EVALUATE)
    script.call(epoch, 10, 0)
    began = script.ms
    script.ms += 20
    script.call(validation, 30, 0)
    script.call(validation, 30, 0)
    script.log.notes.append(Evaluated(validation, began * MS, script.ms * MS))
    script.call(epoch, 10, 0)
    rows = script.rows()
    assert [row["away_ns"] // MS for row in rows] == [0, 80]
    (found,) = script.evaluations()
    assert (found.batches, (found.ended_ns - found.started_ns) // MS) == (2, 80)


def test_predict_of_many_batches_between_steps_is_an_evaluation_with_the_line_that_calls_it(script: Script) -> None:
    epoch, predicted = Pass("fit", Role.FIT), Pass("predict", Role.PREDICT)
    script.call(epoch, 10, 0)
    began = script.ms
    script.ms += 20
    script.take(predicted, 2, 8)
    script.take(predicted, 2, 8)
    script.ms += 60
    script.log.notes.append(Evaluated(predicted, began * MS, script.ms * MS, "model.predict at train.py:9"))
    script.call(epoch, 10, 0)
    assert [row["away_ns"] // MS for row in script.rows()] == [0, 100]
    (found,) = script.evaluations()
    told = (found.call, found.batches, (found.ended_ns - found.started_ns) // MS, found.first_batch_ns // MS)
    assert told == ("model.predict at train.py:9", 2, 100, 22)


def test_a_whole_call_of_predict_counts_though_it_takes_one_batch(script: Script) -> None:
    epoch, predicted = Pass("fit", Role.FIT), Pass("predict", Role.PREDICT)
    script.call(epoch, 10, 0)
    began = script.ms
    script.take(predicted, 2, 98)
    script.log.notes.append(Evaluated(predicted, began * MS, script.ms * MS, "model.predict at train.py:9"))
    script.call(epoch, 10, 0)
    assert [row["away_ns"] // MS for row in script.rows()] == [0, 100]
    assert [found.batches for found in script.evaluations()] == [1]


def test_warmup_is_the_first_step_and_what_follows_within_a_second(script: Script) -> None:
    epoch = _training()
    for compute in (5000, *[100] * 30):
        script.take(epoch, 0, compute)
    assert [row["warmup"] for row in script.rows()] == [True] * 10 + [False] * 20


def test_rows_name_the_window_that_was_open(script: Script) -> None:
    epoch = _training()
    window = Window(7, None, SHIFT_NS + 25 * MS, 0, 0, 0, stopped_ns=SHIFT_NS + 45 * MS)
    script.windows.append(window)
    for _ in range(7):
        script.take(epoch, 0, 10)
    assert [row["window"] for row in script.rows()] == [-1, -1, 7, 7, 7, -1]


def test_a_function_that_takes_its_batches_itself_shares_its_call_among_them(script: Script) -> None:
    iterator = object()
    epoch = Pass("own function", has_gradients=True, iterator=lambda: iterator)
    for call in range(4):
        if call == 1:
            epoch.steps_per_call = 5  # as tf.data counted after the first call
        script.log.notes.append(Called(epoch, script.ms * MS, None, None))
        script.ms += 100
    script.log.notes.append(Ended(epoch, script.ms * MS, script.ms * MS))
    script.log.notes.append(Seen(epoch, script.ms * MS, script.ms * MS, Gaps(20, [15 * MS] * 20)))
    rows = script.rows()
    assert _lengths_ms(rows[5:]) == [(5, 20)] * 15
    assert len(rows) == 20


def test_what_lies_between_two_calls_of_fit_belongs_to_no_step_and_a_new_function_warms_up(script: Script) -> None:
    for fit in (1, 2):
        epoch = Pass("fit", Role.FIT, fit=fit)
        for number in range(8):
            script.call(epoch, 900 if number == 0 else 20, 0, is_first=number == 0)
        script.ms += 5000  # the script builds another model
    rows = script.rows()
    assert [row["away_ns"] // MS for row in rows] == [*[0] * 8, 5000, *[0] * 7]
    assert [row["warmup"] for row in rows] == [True] * 8 + [True, *[False] * 7], "those right after the first step too"
    assert rows[8]["wait_ns"] is None, "what the function's graph took is no wait"


def test_predict_before_a_step_is_no_wait_of_it(script: Script) -> None:
    epoch = _training()
    for _ in range(3):
        script.take(epoch, 1, 9)
    script.take(Pass("predict", Role.PREDICT), 2, 98)
    script.take(epoch, 1, 9)
    script.end(epoch)
    assert [(row["wait_ns"] // MS, row["away_ns"]) for row in script.rows()] == [(1, 0)] * 4
    assert script.evaluations() == []


def test_checkpoints_are_reported_with_their_times(script: Script) -> None:
    script.take(_training(), 1, 9)
    script.log.notes.append(Saved(20 * MS, 50 * MS))
    script.rows()
    (found,) = [event for event in read_events(script.own.events) if isinstance(event, CheckpointEvent)]
    assert (found.started_ns, found.ended_ns) == (SHIFT_NS + 20 * MS, SHIFT_NS + 50 * MS)


def test_ends_of_iterators_are_reported_with_their_times(script: Script) -> None:
    script.take(_training(), 1, 9)
    script.log.notes.append(GivenUp(20 * MS, 50 * MS))
    script.rows()
    (found,) = [event for event in read_events(script.own.events) if isinstance(event, IteratorEndEvent)]
    assert (found.started_ns, found.ended_ns) == (SHIFT_NS + 20 * MS, SHIFT_NS + 50 * MS)


def test_only_iterators_of_the_training_are_reported(script: Script) -> None:
    look, of = Pass("another", made=Made(0, 1 * MS)), _training(made=Made(2 * MS, 5 * MS))
    script.take(of, 1, 9)
    script.take(look, 1, 0)
    script.take(of, 1, 9)
    script.log.notes.append(GivenUp(20 * MS, 50 * MS, look))
    script.rows()
    events = read_events(script.own.events)
    (found,) = [event for event in events if isinstance(event, IteratorStartEvent)]
    assert (found.started_ns, found.ended_ns) == (SHIFT_NS + 2 * MS, SHIFT_NS + 5 * MS)
    assert not [event for event in events if isinstance(event, IteratorEndEvent)], "of another dataset"


def test_a_pass_that_is_broken_off_is_left_when_the_next_one_is_made(script: Script) -> None:
    """Each step takes the first batch of another pass: 10 ms of it make the iterator."""
    for _ in range(3):
        script.ms += 10
        script.take(_training(made=Made((script.ms - 10) * MS, script.ms * MS)), 1, 9)
    rows = script.rows()
    assert _lengths_ms(rows) == [(1, 10), (1, 10)], "the last one has no end"
    assert [(row["start_ns"] - SHIFT_NS) // MS for row in rows] == [10, 30]
    assert [row["epoch"] for row in rows] == [0, 1]


def test_an_iterator_that_was_made_long_before_its_pass_shortens_no_step(script: Script) -> None:
    early = Made(0, 5 * MS)
    for _ in range(3):
        script.take(_training(made=early), 1, 9)
    assert _lengths_ms(script.rows()) == [(1, 10), (1, 10)]
    assert script.log.step_ns == 10 * MS


def test_batches_that_the_script_makes_are_reported_once_with_the_call_of_the_step(script: Script) -> None:
    for _ in range(4):
        script.take(Pass("own", has_gradients=True, call="step at train.py:4"), 5, 9)
    assert [row["wait_ns"] // MS for row in script.rows()] == [5, 5, 5]
    assert [event.call for event in read_events(script.own.events) if isinstance(event, OwnBatchesEvent)] == [
        "step at train.py:4"
    ]


def test_a_few_batches_that_the_script_makes_before_it_reads_a_dataset_are_not_reported(script: Script) -> None:
    script.take(Pass("own", has_gradients=True, call="step at train.py:4"), 5, 9)
    for _ in range(4):
        script.take(_training(), 5, 9)
    script.rows()
    assert not [event for event in read_events(script.own.events) if isinstance(event, OwnBatchesEvent)]


def test_the_places_that_call_predict_between_steps_are_reported_the_longest_first(script: Script) -> None:
    def predict(*calls: tuple[str, int]) -> None:
        for call, length_ms in calls:
            script.log.notes.append(Predicted(call, script.ms * MS, (script.ms + length_ms) * MS))
            script.ms += length_ms

    predict(("a", 900), ("b", 900))  # before the first step
    script.take(_training(), 1, 9)
    predict(("a", 2), ("b", 5), ("c", 900))  # the first call of a place traces
    script.take(_training(), 1, 9)
    predict(("b", 7), ("a", 1))
    script.take(_training(), 1, 9)
    script.take(_training(), 1, 9)
    predict(("b", 900))  # after the last step
    script.rows()
    found = [event for event in read_events(script.own.events) if isinstance(event, PredictEvent)]
    assert [(each.call, each.count, each.total_ns) for each in found] == [("b", 2, 12 * MS), ("a", 2, 3 * MS)]
    assert found[0].span_ns == (3 * 10 + 2 + 5 + 900 + 7 + 1) * MS


def test_a_script_whose_steps_nobody_sees_says_so(script: Script) -> None:
    script.log.close(0)
    (note,) = [event for event in read_events(script.own.events) if isinstance(event, NoteEvent)]
    assert "No steps were timed" in note.sentence


def test_a_step_waits_as_long_as_the_python_that_makes_its_batch(script: Script) -> None:
    epoch, validation = Pass("fit", Role.FIT, iterator=None), Pass("evaluate", Role.EVALUATE)
    for _ in range(3):
        script.log.notes.append(Fed(validation, script.ms * MS, (script.ms + 90) * MS))
        script.log.notes.append(Fed(epoch, script.ms * MS, (script.ms + 25) * MS))
        script.call(epoch, 30, 10)
    rows = script.rows()
    assert _lengths_ms(rows) == [(25, 30)] * 3


def test_steps_that_take_no_batch_of_tf_data_have_no_wait_whatever_else_is_known(script: Script) -> None:
    fit, own = Pass("fit", Role.FIT, 4, iterator=lambda: "iterator"), _training("eager")
    script.gaps = Gaps(4, [20 * MS] * 3)  # of each step of `fit`, which takes 20 ms, nothing was waited for
    for _ in range(4):
        script.call(fit, 20, 0)
    script.drain()
    for _ in range(4):
        script.log.notes.append(Called(own, script.ms * MS, None, 1))
        script.ms += 100
    script.ms += 5000
    rows = script.rows()
    assert [row["wait_ns"] for row in rows[4:]] == [None] * (len(rows) - 4)
    assert len(rows) >= 7


def test_a_step_that_the_next_one_ends_is_over_where_an_evaluation_begins(script: Script) -> None:
    own, evaluation = _training("eager"), Pass("validate", Role.LOOP, 4)
    for number in range(4):
        script.log.notes.append(Called(own, script.ms * MS, None, 1))
        script.ms += 100
        for _ in range(3) if number == 1 else ():
            script.take(evaluation, 0, 50)
    rows = script.rows()
    assert [(row["end_ns"] - row["start_ns"]) // MS for row in rows] == [100, 100, 100]
    assert [row["away_ns"] // MS for row in rows] == [0, 0, 100], "up to the arrival of its last batch"
    assert [event.batches for event in script.evaluations()] == [3]


def test_batches_that_follow_each_other_make_the_same_rows_at_once_as_one_by_one(script: Script) -> None:
    epoch = _training()
    script.windows.append(Window(4, None, SHIFT_NS + 1005 * MS, 0, 0, 0, stopped_ns=SHIFT_NS + 1025 * MS))
    for number in range(200):
        script.take(epoch, number % 7, 10 - number % 7)
        if number % 90 == 0:
            script.drain()
    script.end(epoch)
    rows = script.rows()
    assert _lengths_ms(rows) == [(number % 7, 10) for number in range(200)]
    assert [row["step"] for row in rows] == list(range(200))
    assert [row["step"] for row in rows if row["window"] == 4] == [100, 101, 102]
    assert {row["examples"] for row in rows} == {4}


def test_steps_that_are_told_late_are_put_between_those_that_were_told_at_once() -> None:
    late, at_once = _training(), Pass("validation")
    first, second = Took(late, 0, 10, 4), Took(late, 15, 20, 4)
    between, evaluated = Called(at_once, 11, 14, 1), Evaluated(at_once, 5, 30)
    notes: deque[Note] = deque([between, evaluated, first, second])
    sort_notes(notes)
    assert list(notes) == [first, between, second, evaluated]
