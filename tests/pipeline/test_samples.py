"""Two readings of a dataset, compared: equal, another order, or something else."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline_lab.pipeline.samples import (
    Epochs,
    ProofOutcome,
    Sample,
    StageSize,
    compare_joined,
    compare_others,
    compare_samples,
    repeats_what_was_new,
)

ROWS = {"a": 1, "b": 1, "c": 1, "d": 1}
SAMPLE = Sample((("ab", "cd"), ("cd", "ab")), (ROWS, ROWS), (True, True), 64)
SHORT = replace(SAMPLE, ended=(False, False))


def test_the_same_digests_in_every_pass_are_equal() -> None:
    proof = compare_samples(SAMPLE, SAMPLE)
    assert proof.outcome is ProofOutcome.EQUAL
    assert proof.sentence == "Equal, element by element: 2 and 2 elements in 2 passes, each to the end of the dataset."
    assert proof.is_whole


def test_of_readings_that_stopped_early_what_both_have_is_compared() -> None:
    longer = replace(SHORT, passes=(("ab", "cd", "ef"), ("cd", "ab")))
    proof = compare_samples(SHORT, longer)
    assert (proof.outcome, proof.elements, proof.is_whole) == (ProofOutcome.EQUAL, (2, 2), False)


def test_another_order_is_only_known_at_the_end_of_the_dataset() -> None:
    other = replace(SAMPLE, passes=(("ac", "bd"), ("cd", "ab")))
    assert compare_samples(SAMPLE, other).outcome is ProofOutcome.REORDERED
    assert compare_samples(SHORT, replace(other, ended=(False, False))).outcome is ProofOutcome.DIFFERENT
    twice = replace(other, rows=({**ROWS, "a": 2}, ROWS))
    assert (
        compare_samples(SAMPLE, twice).sentence == "Element 1 of the first pass is another one than without the change."
    )


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (replace(SAMPLE, passes=(("ab",), ("cd",)), rows=({"a": 1, "b": 1},) * 2), "1 elements instead of 2"),
        (replace(SAMPLE, passes=((), ())), "no elements"),
        (replace(SAMPLE, passes=(("ab", "cd"), ("cd", "xy")), rows=(ROWS, {})), "Element 2 of pass 2"),
        (replace(SAMPLE, passes=(("ab", "cd"), ("ab", "cd")), rows=(ROWS, {})), "Pass 2 repeats"),
    ],
)
def test_the_first_difference_is_named(after: Sample, said: str) -> None:
    proof = compare_samples(SAMPLE, after)
    assert proof.outcome is ProofOutcome.DIFFERENT
    assert said in proof.sentence


def test_a_dataset_that_goes_on_gives_one_epoch_after_the_other() -> None:
    endless = Sample((("ab", "cd", "cd", "ab", "ef"),), ({},), (False,), 64)
    proof = compare_joined(SAMPLE, endless, Epochs.JOINED)
    assert (proof.outcome, proof.elements) == (ProofOutcome.EQUAL, (4,))
    assert proof.sentence == "Equal, element by element: 4 elements, one epoch after the other."
    repeats = replace(endless, passes=(("ab", "cd", "ab", "cd"),))
    assert (
        compare_joined(SAMPLE, repeats, Epochs.JOINED).sentence
        == "Element 3 of the first pass is another one than without the change."
    )
    redrawn = compare_joined(SAMPLE, repeats, Epochs.REDRAWN)
    assert (redrawn.outcome, redrawn.elements) == (ProofOutcome.REDRAWN, (2,))
    assert "2 elements, of the first epoch; in later ones" in redrawn.sentence
    assert compare_joined(SHORT, endless, Epochs.JOINED).elements == (2,), "where a pass stopped early is no end"


@pytest.mark.parametrize(("factor", "outcome"), [(1 + 1e-6, ProofOutcome.ROUNDED), (1.01, ProofOutcome.DIFFERENT)])
def test_numbers_may_differ_by_rounding(tmp_path: Path, factor: float, outcome: ProofOutcome) -> None:
    paths = tmp_path / "before.npz", tmp_path / "after.npz"
    values = np.linspace(0, 1, 8)
    for path, times in zip(paths, (1.0, factor), strict=True):
        np.savez(path, **{"0-0-0": values * times, "0-0-1": np.arange(3), "1-1-0": values * times})
    other = replace(SAMPLE, passes=(("xy", "cd"), ("cd", "xy")), rows=({}, {}))
    assert compare_samples(SAMPLE, other, paths).outcome is outcome
    elsewhere = replace(SAMPLE, passes=(("xy", "cd"), ("xy", "ab")), rows=({}, {}))
    assert compare_samples(SAMPLE, elsewhere, paths).outcome is ProofOutcome.DIFFERENT, "what differs was not kept"


def test_what_is_new_in_each_pass_must_not_be_repeated() -> None:
    fresh = replace(SAMPLE, rows=(ROWS, {**ROWS, "e": 1}))
    assert repeats_what_was_new(fresh, SAMPLE)
    assert not repeats_what_was_new(fresh, fresh)
    assert not repeats_what_was_new(SAMPLE, SAMPLE)


def test_what_an_epoch_takes_is_only_known_with_its_length() -> None:
    assert StageSize("map", 100.0, 8).epoch_bytes == 800.0
    assert StageSize("map", 100.0, None).epoch_bytes is None


def test_other_datasets_have_to_stay_as_they_are_too() -> None:
    other = replace(SAMPLE, places=("train.py:4", "train.py:3"), number=1)
    before = replace(SAMPLE, others=(other,), made=2)
    assert compare_others(before, before, ["train.py:4"]) is None
    assert compare_others(replace(SAMPLE, made=2), replace(SAMPLE, made=3), []) is None, "nothing was asked for"
    changed = replace(before, others=(replace(other, passes=(("xx", "cd"), ("cd", "ab")), rows=({"x": 1}, ROWS)),))
    found = compare_others(before, changed, [])
    assert found is not None
    assert (
        found.sentence
        == "The dataset that train.py:4 makes would change too: Element 1 of the first pass is another one than without the change."
    )
    late = compare_others(before, before, ["train.py:9"])
    assert late is not None
    assert "it is not there when the training begins" in late.sentence
    more = compare_others(before, replace(before, made=3), [])
    assert more is not None
    assert more.outcome is ProofOutcome.FAILED
