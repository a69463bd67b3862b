import pytest

from pipeline_lab.worker.recipe.notes import MAX_USES, Ledger, Note, UseFacts


def test_what_was_not_read_for_longest_makes_way_for_what_is_read_now() -> None:
    ledger = Ledger()
    notes = [Note(f"method_{number}", None) for number in range(MAX_USES + 1)]
    for note in (*notes[:MAX_USES], notes[0], notes[MAX_USES]):  # the first one is read again, as in each epoch
        ledger.add_use(note, "training", None, UseFacts)
    recipe = ledger.recipe()
    methods = {recipe.calls[use.call - 1].method for use in recipe.uses}
    assert len(recipe.uses) == MAX_USES
    assert {"method_0", f"method_{MAX_USES}"} <= methods
    assert "method_1" not in methods


def test_a_use_lasts_until_another_dataset_is_read_that_does_not_validate_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock_s = iter((10.0, 13.0, 14.0, 20.0))
    monkeypatch.setattr("pipeline_lab.worker.recipe.notes.time.monotonic", lambda: next(clock_s))
    ledger, first, second = Ledger(), Note("first", None), Note("second", None)
    for note in (first, second, first):
        ledger.add_use(note, "training", None, UseFacts)
        ledger.add_use(note, "validation", None, UseFacts)
    uses = [use for use in ledger.recipe().uses if use.role == "training"]
    assert [(use.iterators, use.seconds) for use in uses] == [(2, 3 + 6), (1, 1)]


def test_steps_are_counted_where_a_dataset_was_read_last() -> None:
    ledger, note = Ledger(), Note("range", None)
    assert ledger.find_steps(note) is None
    ledger.add_use(note, "training", None, UseFacts)
    ledger.add_use(note, "loop", None, UseFacts)
    steps = ledger.find_steps(note)
    assert steps is not None
    steps.count += 5
    assert [(use.role, use.trained_steps) for use in ledger.recipe().uses] == [("training", 0), ("loop", 5)]


def test_what_is_known_of_a_line_holds_for_all_datasets_that_are_read_there() -> None:
    ledger = Ledger()
    first, second = Note("range", None), Note("range", None)
    for note, facts in (
        (first, UseFacts(2, 8, False)),
        (first, UseFacts(None, 9, True)),
        (second, UseFacts(2, None, True)),
    ):
        ledger.add_use(note, "training", None, lambda facts=facts: facts)
        (use,) = ledger.recipe().uses
        is_second = note is second
        assert (use.length, use.reads_state) == ((None, True) if is_second else (8, False))
