"""Laws of interval arithmetic, checked against sets of single nanoseconds."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.analysis.activity import intervals
from pipeline_lab.analysis.activity.intervals import (
    EMPTY,
    IntArray,
    clip,
    complement,
    contains,
    covered_until,
    intersect,
    length_within,
    subtract,
    total,
    union,
    union_by,
    union_of,
)

SPAN = 40


@pytest.fixture(params=[intervals.WORTH_COMPILED, 1], ids=["few", "compiled"], autouse=True, scope="module")
def rows_worth_compiled(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hold every law of few rows, and of enough that compiled loops do the work."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "WORTH_COMPILED", request.param)
        yield


events = st.lists(st.tuples(st.integers(0, SPAN), st.integers(0, SPAN)), max_size=12)


def as_set(pairs: list[tuple[int, int]]) -> IntArray:
    rows = np.array([(min(pair), max(pair)) for pair in pairs], np.int64).reshape(-1, 2)
    return union(rows[:, 0], rows[:, 1])


def moments(intervals: IntArray) -> set[int]:
    return {moment for start, end in intervals.tolist() for moment in range(start, end)}


def is_set(intervals: IntArray) -> bool:
    flat = intervals.ravel()
    return bool(intervals.dtype == np.int64 and intervals.shape[1] == 2 and (np.diff(flat) > 0).all())


def test_union_joins_what_overlaps_or_touches():
    joined = union(np.array([10, 0, 4, 20]), np.array([12, 5, 10, 20]))
    assert joined.tolist() == [[0, 12]]


def test_gaps_of_a_window_include_its_edges():
    assert complement(np.array([[2, 4], [6, 8]]), 0, 10).tolist() == [[0, 2], [4, 6], [8, 10]]
    assert complement(EMPTY, 3, 7).tolist() == [[3, 7]]


def test_length_within_overlapping_bins():
    assert length_within(np.array([[0, 4], [6, 10]]), np.array([[0, 10], [3, 7], [20, 30]])).tolist() == [8, 2, 0]


@pytest.mark.slow
@given(events)
def test_union_covers_what_its_events_cover(pairs: list[tuple[int, int]]):
    expected = {moment for pair in pairs for moment in range(min(pair), max(pair))}
    assert moments(as_set(pairs)) == expected
    assert is_set(as_set(pairs))


@pytest.mark.slow
@given(events, events)
def test_set_algebra(left_pairs: list[tuple[int, int]], right_pairs: list[tuple[int, int]]):
    left, right = as_set(left_pairs), as_set(right_pairs)
    for result, expected in (
        (intersect(left, right), moments(left) & moments(right)),
        (subtract(left, right), moments(left) - moments(right)),
        (union_of(left, right), moments(left) | moments(right)),
    ):
        assert moments(result) == expected
        assert is_set(result)


@pytest.mark.slow
@given(events, st.integers(0, SPAN), st.integers(0, SPAN))
def test_a_window_is_what_is_covered_and_its_gaps(pairs: list[tuple[int, int]], start: int, end: int):
    intervals = as_set(pairs)
    inside, gaps = clip(intervals, start, end), complement(intervals, start, end)
    assert is_set(inside)
    assert is_set(gaps)
    assert moments(inside) == moments(intervals) & set(range(start, end))
    assert total(inside) + total(gaps) == max(0, end - start)


@pytest.mark.slow
@given(events, events, st.lists(st.integers(-5, SPAN + 5), max_size=5))
def test_lengths_are_counts_of_moments(
    pairs: list[tuple[int, int]], bin_pairs: list[tuple[int, int]], times: list[int]
):
    intervals = as_set(pairs)
    bins = np.array([(min(pair), max(pair)) for pair in bin_pairs], np.int64).reshape(-1, 2)
    expected = [len(moments(intervals) & set(range(start, end))) for start, end in bins.tolist()]
    assert length_within(intervals, bins).tolist() == expected
    at = np.array(times, np.int64)
    assert covered_until(intervals, at).tolist() == [sum(m < t for m in moments(intervals)) for t in times]
    assert contains(intervals, at).tolist() == [t in moments(intervals) for t in times]


@pytest.mark.slow
@given(events, events)
def test_a_union_by_key_is_each_keys_union(first: list[tuple[int, int]], second: list[tuple[int, int]]):
    key = np.array([7] * len(first) + [-3] * len(second), np.int64)
    start, end = (np.array([pair[side] for pair in first + second], np.int64) for side in (0, 1))
    key, start, end = union_by(key, np.minimum(start, end), np.maximum(start, end))
    assert (np.diff(start) >= 0).all()
    for value, pairs in ((7, first), (-3, second)):
        mine = np.stack((start[key == value], end[key == value]), axis=1)
        assert np.array_equal(mine, as_set(pairs))


@pytest.mark.slow
@given(events, st.lists(st.integers(-5, SPAN + 5), min_size=1, max_size=40))
def test_what_lies_before_a_time_does_not_depend_on_the_order_of_the_times(
    pairs: list[tuple[int, int]], times: list[int]
) -> None:
    inside = as_set(pairs)
    covered = covered_until(inside, np.array(times, np.int64))
    assert covered.tolist() == [len([one for one in moments(inside) if one < time]) for time in times]


@pytest.mark.slow
def test_far_jumps_in_time_are_found_too() -> None:
    start = np.arange(0, 100_000, 10)
    inside = np.stack((start, start + 3), axis=1)
    times = np.array([99_999, 5, 50_001, 0, 99_990, 12])
    assert covered_until(inside, times).tolist() == [30_000, 3, 15_001, 0, 29_997, 5]


def test_the_outermost_intervals_begin_in_no_other():
    start, end = np.array([30, 0, 10, 0, 50, 45]), np.array([40, 20, 15, 5, 60, 70])
    assert intervals.outermost(start, end).tolist() == [1, 0, 5]
    assert intervals.outermost(np.empty(0, np.int64), np.empty(0, np.int64)).tolist() == []
