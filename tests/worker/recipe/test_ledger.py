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


def test_a_loop_between_the_steps_of_a_training_is_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock_s = iter((10.0, 11.0, 20.0))
    monkeypatch.setattr("pipeline_lab.worker.recipe.notes.time.monotonic", lambda: next(clock_s))
    ledger, trained, other = Ledger(), Note("trained", None), Note("other", None)
    ledger.add_use(trained, "loop", None, UseFacts)
    ledger.mark_trained(trained)
    ledger.mark_trained(Note("never read", None))
    for _ in range(3):
        ledger.add_use(other, "loop", None, UseFacts)
    uses = ledger.recipe().uses
    assert [(use.iterators, use.seconds, use.trains) for use in uses] == [(1, 10, True), (3, 0, False)]


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
