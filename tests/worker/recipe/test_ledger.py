from pipeline_lab.worker.recipe.notes import MAX_USES, Ledger, Note


def test_what_was_not_read_for_longest_makes_way_for_what_is_read_now() -> None:
    ledger = Ledger()
    notes = [Note(f"method_{number}", None) for number in range(MAX_USES + 1)]
    for note in (*notes[:MAX_USES], notes[0], notes[MAX_USES]):  # the first one is read again, as in each epoch
        ledger.add_use(note, "training", None, lambda: None)
    recipe = ledger.recipe()
    methods = {recipe.calls[use.call - 1].method for use in recipe.uses}
    assert len(recipe.uses) == MAX_USES
    assert {"method_0", f"method_{MAX_USES}"} <= methods
    assert "method_1" not in methods
