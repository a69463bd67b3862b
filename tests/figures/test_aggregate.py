import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.figures.aggregate import group_mean, group_percentile, group_size, group_starts


@given(st.integers(0, 5000), st.integers(1, 500))
def test_groups_are_bounded_and_cover_everything(count, cap):
    starts = group_starts(count, cap)
    assert len(starts) <= cap
    sizes = np.diff(np.append(starts, count))
    assert sizes.sum() == count
    assert all(sizes[:-1] == group_size(starts))


def test_groups_are_joined_by_mean_and_percentile():
    values = np.array([1.0, 3.0, 5.0, 7.0, 100.0])
    starts = group_starts(5, 3)
    assert group_mean(values, starts).tolist() == [2.0, 6.0, 100.0]
    assert group_percentile(values, starts, 100).tolist() == [3.0, 7.0, 100.0]


def test_missing_values_stay_missing_only_where_nothing_else_is():
    found = group_percentile(np.array([np.nan, 2.0, np.nan, np.nan]), np.array([0, 2]), 50)
    assert found[0] == 2.0
    assert np.isnan(found[1])


def test_nothing_gives_nothing():
    nothing = np.zeros(0)
    assert len(group_mean(nothing, group_starts(0, 10))) == 0
    assert len(group_percentile(nothing, group_starts(0, 10), 50)) == 0
