import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.figures.aggregate import group_mean, group_percentile, group_size, group_starts, outline


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


@given(st.lists(st.floats(0, 1e9) | st.just(np.nan), max_size=40), st.integers(1, 12), st.sampled_from([5, 50, 100]))
def test_a_percentile_is_that_of_each_group_by_itself(values, cap, percent):
    values, starts = np.array(values, np.float64), group_starts(len(values), cap)
    groups = [part[~np.isnan(part)] for part in np.split(values, starts[1:])] if len(values) else []
    alone = [np.percentile(part, percent) if len(part) else np.nan for part in groups]
    assert group_percentile(values, starts, percent).tobytes() == np.array(alone, np.float64).tobytes()


def test_a_band_is_a_closed_line_around_each_of_its_parts():
    x, low, high = np.array([1.0, 2, 5, 6]), np.array([10.0, 11, 12, 13]), np.array([20.0, 21, 22, 23])
    around_x, around_y = outline(x, low, high, np.array([0.0, 0, 1, 1]))
    np.testing.assert_array_equal(around_x, [1, 2, 2, 1, np.nan, 5, 6, 6, 5])
    np.testing.assert_array_equal(around_y, [20, 21, 11, 10, np.nan, 22, 23, 13, 12])
    assert outline(x, low, high, None)[1].tolist() == [20, 21, 22, 23, 13, 12, 11, 10]
