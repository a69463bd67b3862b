"""The benchmark over published scripts: its entries are complete, and its truth follows from times alone."""

import json
from pathlib import Path

import pytest

from benchmarks.fix.__main__ import by_hand, print_rows
from benchmarks.scripts.entries import read_entries
from benchmarks.scripts.score import ONE_ITERATOR, WORDS, Answer, find_truth, mark

ENTRIES = read_entries()


def test_entries_are_complete_and_in_sets() -> None:
    assert len(ENTRIES) >= 25
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES)
    assert {entry.set for entry in ENTRIES} == {"tune", "score", "fresh", "unseen", "later", "last"}
    assert {change.kind for entry in ENTRIES for change in entry.changes} <= set(WORDS)
    assert {change.effect for entry in ENTRIES for change in entry.changes} == {"nothing", "order", "content"}
    assert all(len(entry.commit) == 40 for entry in ENTRIES)


def times(
    compute: float, alone: float, changed: float, wait: float | None = None, ends: tuple[float, ...] = (0, 0, 0)
) -> dict[str, object]:
    """Return measurements of steps of 100 ms as written, ms."""
    return {
        "as_written_ms": [99.0, 101.0],
        "ends_ms": list(ends),
        "compute_ms": [compute - 1, compute + 1],
        "input_ms": alone,
        "wait_ms": wait,
        "changes_ms": {"prefetch": [changed - 1, changed + 1]},
        "change_ends_ms": {"prefetch": [0.0, 0.0]},
    }


def test_the_truth_is_told_by_times() -> None:
    entry = next(one for one in ENTRIES if one.name == "keras-pointnet")
    assert find_truth(entry, times(97, 10, 99)).classes == {"device-bound"}
    assert find_truth(entry, times(97, 10, 99)).best is None
    assert find_truth(entry, times(30, 90, 60)).classes == {"input-bound"}
    assert find_truth(entry, times(30, 50, 60, wait=65)).classes == {"input-bound"}
    assert find_truth(entry, times(30, 50, 60)).classes == {"input-bound", "host-contention"}
    assert find_truth(entry, times(30, 90, 60)).best == "prefetch"
    tiny = next(one for one in ENTRIES if one.name == "keras-structured-data")
    measured = times(85, 30, 99) | {  # 40 % are Python between steps, 15 % input
        "changes_ms": {"steps_per_execution=8": [60.0]},
        "change_ends_ms": {"steps_per_execution=8": [0.0]},
    }
    assert "idle-other" in find_truth(tiny, measured).classes


def test_the_ends_of_iterators_are_neither_the_inputs_nor_the_devices() -> None:
    entry = next(one for one in ENTRIES if one.name == "keras-pointnet")
    assert find_truth(entry, times(97, 10, 99, ends=(0, 0, 6))).classes == {"device-bound", "idle-other"}
    assert find_truth(entry, times(70, 10, 99, ends=(25, 30, 28))).classes == {"idle-other"}


def test_a_change_gains_what_it_does_apart_from_the_ends_of_iterators() -> None:
    entry = next(one for one in ENTRIES if one.name == "keras-pointnet")
    measured = times(30, 90, 60, ends=(9, 20, 0)) | {
        "as_written_ms": [120.0, 100.0],  # both took 100 ms but for the end of an iterator that slept
        "change_ends_ms": {"prefetch": [0.0, 11.0]},  # 59 and 50 ms
    }
    truth = find_truth(entry, measured)
    assert truth.step_ms == 110.0
    assert truth.spread_percent == 0.0
    assert truth.gains_percent["prefetch"] == pytest.approx(45.5)
    assert truth.intervals_percent["prefetch"] == pytest.approx((41.0, 50.0))
    assert truth.intervals_percent[ONE_ITERATOR] == pytest.approx((0.0, 100 * 20 / 110))


def test_whether_ends_of_iterators_sleep_is_a_runs_own() -> None:
    """100 ms without; a run of 125 lost a fifth to them, so that a change of 40 % is one of 32, and the class may be theirs."""
    entry = next(one for one in ENTRIES if one.name == "keras-pointnet")
    truth = find_truth(entry, times(97, 10, 60))
    slept = truth.of_run(125.0, 20.0)
    assert slept.gains_percent == pytest.approx({"prefetch": 32.0, ONE_ITERATOR: 20.0})
    assert truth.of_run(110.0, 20.0).gains_percent[ONE_ITERATOR] == pytest.approx(100 * 10 / 110)
    awake = truth.of_run(100.0, 0.0)
    assert awake.gains_percent == pytest.approx({"prefetch": 40.0, ONE_ITERATOR: 0.0})
    sleepy = find_truth(entry, times(70, 10, 99, ends=(25, 30, 28)))
    assert sleepy.classes == {"idle-other"}
    assert slept.classes == {"device-bound", "idle-other"}
    assert sleepy.of_run(71.0, 0.0).classes == {"idle-other", "device-bound"}


def test_an_answer_is_held_against_it() -> None:
    entry = next(one for one in ENTRIES if one.name == "keras-pointnet")
    text = "a = 1\ndataset.map(augment)\n"
    truth = find_truth(entry, times(30, 90, 60))
    said = Answer("input-bound", None, "medium", "", ["train.py:2-2"], [("Prefetch at the end.", 35.0)], "run")
    found = mark(entry, truth, said, text)
    assert (found.is_right, found.is_named, found.is_best_first, found.is_near) == (True, True, True, True)
    silent = Answer("device-bound", None, "high", "", ["train.py:1-1"], [("Look at the model.", None)], "run")
    found = mark(entry, truth, silent, text)
    assert (found.is_right, found.is_named, found.is_best_first, found.is_near) == (False, False, False, False)


def test_a_promise_is_held_against_what_the_ends_of_iterators_took() -> None:
    entry = next(one for one in ENTRIES if one.name == "keras-pointnet")
    said = Answer("idle-other", None, "medium", "", [], [("Let one iterator serve all epochs: repeat() it.", 30.0)], "")
    for ends, best, is_right in ((28, ONE_ITERATOR, True), (0, None, False)):
        truth = find_truth(entry, times(70, 10, 99, ends=(ends, ends, ends)))
        assert truth.best == best
        assert mark(entry, truth, said, "").is_best_first is is_right


def test_a_fix_is_held_against_what_may_do_the_same_by_hand() -> None:
    video = next(one for one in ENTRIES if one.name == "tf-video")
    assert by_hand(video, None, may_reorder=False) == []
    assert [change.name for change in by_hand(video, None, may_reorder=True)] == ["cache"]
    fashion = next(one for one in ENTRIES if one.name == "tutorials-fashion-fit")
    gains = {"gains_percent": {"batch before the map": 25.0, "cache after the map": 28.0, "prefetch": -16.0}}
    names = [change.name for change in by_hand(fashion, gains, may_reorder=False)]
    assert names == ["cache after the map", "batch before the map"]
    tiny = next(one for one in ENTRIES if one.name == "keras-collaborative-filtering")
    assert by_hand(tiny, None, may_reorder=True) == [], "the training is not the input"


def test_a_changed_script_that_fails_is_not_near_what_is_made_by_hand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (entry, *_) = ENTRIES
    change = {"rewrite": "prefetch"}
    (tmp_path / "fix.json").write_text(json.dumps({"fix": {"changes": [change], "proof": {"outcome": "equal"}}}))
    for fixed, near in (([(193.0, 100.0)], 1), ([], 0)):
        times = {"as written": [(100.0, 0.0)], "fixed": fixed, "by hand": [(92.0, 0.0)]}
        (tmp_path / "time.json").write_text(json.dumps(times))
        print_rows([(entry, tmp_path)])
        assert f"within 10 % of by hand {near}\n" in capsys.readouterr().out
