import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.statistics.sampling import (
    chi_square_per_df,
    distinct_within_epochs,
    even_counts,
    even_total_variations,
    first_uses,
    repeats_within_epochs,
    share_spread,
    total_variation,
)


def test_thirds_of_files_of_1000_2000_and_3000_records_are_a_sixth_off():
    # 1/3 instead of 1/6, 1/3 as expected, 1/3 instead of 1/2
    shares = np.array([1, 2, 3]) / 6
    assert total_variation(np.array([500, 500, 500]), shares) == pytest.approx(1 / 6)


def test_whole_epochs_are_even():
    assert even_total_variations(np.array([10, 20, 30]), 120).max() == 0


def test_one_sample_of_two_equal_files_is_half_off():
    assert set(even_total_variations(np.array([5, 5]), 1)) == {0.5}


def test_repeats_count_only_within_an_epoch():
    assert repeats_within_epochs(np.array([0, 1, 2, 2, 1, 0]), 3) == 0
    assert repeats_within_epochs(np.array([0, 1, 1, 2, 2, 2]), 3) == 3


def test_the_spread_of_a_share_is_that_of_drawing_without_replacement():
    # 3 of 6 records, shares 1/3 and 2/3: variance of the count is 3·(1/3)(2/3)·(3/5) = 0.4
    assert share_spread(np.array([2, 4]), 3) == pytest.approx([np.sqrt(0.4) / 3] * 2)
    assert share_spread(np.array([2, 4]), 12).tolist() == [0, 0]
    counts = even_counts(np.array([200, 400]), 300, draws=2000)
    assert (counts / 300).std(axis=0) == pytest.approx(share_spread(np.array([200, 400]), 300), rel=0.1)


def test_chi_square_is_one_where_counts_miss_by_their_standard_deviation():
    # expected 50 and 50, observed 55 and 45: 25/50 + 25/50 = 1, one degree of freedom
    assert chi_square_per_df(np.array([55, 45]), np.array([0.5, 0.5])) == 1
    assert chi_square_per_df(np.array([5, 0]), np.array([1.0, 0.0])) is None


def test_distinct_records_are_counted_per_epoch_and_first_uses_are_found():
    ids = np.array([0, 1, 1, 2, 2, 2, 0])
    assert distinct_within_epochs(ids, 3).tolist() == [2, 1, 1]
    assert first_uses(ids).tolist() == [0, 1, 3]


@pytest.mark.slow
@given(st.lists(st.integers(1, 50), min_size=1, max_size=5), st.integers(1, 400))
def test_even_samples_vary_by_a_share_and_by_nothing_over_whole_epochs(records: list[int], samples: int):
    found = even_total_variations(np.array(records), samples, draws=20)
    assert 0 <= found.min() <= found.max() <= 1
    assert even_total_variations(np.array(records), samples * sum(records), draws=5).max() == 0


@pytest.mark.slow
@given(st.permutations(range(7)), st.permutations(range(7)))
def test_shuffled_epochs_repeat_nothing(first: list[int], second: list[int]):
    assert repeats_within_epochs(np.array([*first, *second]), 7) == 0
