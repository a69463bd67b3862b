import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.statistics.sampling import (
    ideal_total_variation,
    mean_batch_entropy,
    repeats_within_epochs,
    total_variation,
)


def test_thirds_of_files_of_1000_2000_and_3000_records_are_a_sixth_off():
    # 1/3 instead of 1/6, 1/3 as expected, 1/3 instead of 1/2
    shares = np.array([1, 2, 3]) / 6
    assert total_variation(np.array([500, 500, 500]), shares) == pytest.approx(1 / 6)


def test_whole_epochs_are_even():
    assert ideal_total_variation(np.array([10, 20, 30]), 120) == 0


def test_one_sample_of_two_equal_files_is_half_off():
    assert ideal_total_variation(np.array([5, 5]), 1) == 0.5


def test_repeats_count_only_within_an_epoch():
    assert repeats_within_epochs(np.array([0, 1, 2, 2, 1, 0]), 3) == 0
    assert repeats_within_epochs(np.array([0, 1, 1, 2, 2, 2]), 3) == 3


def test_a_batch_of_two_files_in_equal_parts_has_one_bit():
    # batch 0 holds files 0 and 1 (1 bit), batch 1 only file 2 (0 bits)
    assert mean_batch_entropy(np.array([0, 0, 1, 1]), np.array([0, 1, 2, 2])) == 0.5


@given(st.lists(st.integers(1, 50), min_size=1, max_size=5), st.integers(1, 400))
def test_ideal_is_a_share_and_shrinks_to_nothing_with_whole_epochs(records: list[int], samples: int):
    ideal = ideal_total_variation(np.array(records), samples, draws=20)
    assert 0 <= ideal <= 1
    assert ideal_total_variation(np.array(records), samples * sum(records), draws=5) == 0


@given(st.permutations(range(7)), st.permutations(range(7)))
def test_shuffled_epochs_repeat_nothing(first: list[int], second: list[int]):
    assert repeats_within_epochs(np.array([*first, *second]), 7) == 0
