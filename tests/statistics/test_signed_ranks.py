import numpy as np
import pytest

from pipeline_lab.statistics.signed_ranks import hodges_lehmann, signed_ranks, walsh_averages


def test_ranks_go_by_size_and_keep_the_sign() -> None:
    assert signed_ranks(np.array([0.5, -2.0, 1.0])).tolist() == [1.0, -3.0, 2.0]


def test_ties_share_their_rank_and_zero_weighs_nothing() -> None:
    assert signed_ranks(np.array([0.0, -1.0, 1.0])).tolist() == [0.0, -2.5, 2.5]


def test_walsh_averages_are_all_pairwise_means() -> None:
    assert walsh_averages(np.array([1.0, 5.0])).tolist() == [1.0, 3.0, 5.0]


def test_one_disturbed_pair_does_not_move_the_centre_far() -> None:
    calm = np.array([0.09, 0.10, 0.10, 0.11, 0.12])
    assert hodges_lehmann(calm) == pytest.approx(0.105, abs=0.006)
    assert hodges_lehmann(np.append(calm, 50.0)) == pytest.approx(0.11, abs=0.006)
