import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.statistics.paired import log_ratios, paired_ratio, sign_flip_p, smallest_effect

blocks = st.lists(st.tuples(st.floats(1e3, 1e9), st.floats(1e3, 1e9)), min_size=2, max_size=20)


def test_a_candidate_that_takes_twice_as_long_has_ratio_two() -> None:
    found = paired_ratio(log_ratios(np.array([1.0, 2.0, 4.0]), np.array([2.0, 4.0, 8.0])))
    assert found.ratio == pytest.approx(2)
    assert (found.low, found.high) == (pytest.approx(2), pytest.approx(2))


def test_the_interval_is_the_paired_t_interval() -> None:
    found = paired_ratio(np.array([-0.1, 0.1, -0.1, 0.1]))
    half = 3.18245 * 0.11547 / 2  # t(0.975, 3) × sd / √n
    assert found.ratio == pytest.approx(1)
    assert np.log(found.high) == pytest.approx(half, rel=1e-4)


def test_four_equal_signs_have_one_chance_in_eight() -> None:
    assert sign_flip_p(np.array([1.0, 2.0, 3.0, 4.0])) == 2 / 16
    assert sign_flip_p(np.array([1.0, -1.0])) == 1.0


def test_many_pairs_are_tested_by_random_flips_that_include_the_observed_one() -> None:
    assert sign_flip_p(np.ones(60)) == 1 / 20_000
    assert sign_flip_p(np.tile([1.0, -1.0], 30)) == 1.0


def test_the_smallest_effect_is_larger_than_the_half_width() -> None:
    assert smallest_effect(0.0, 30) == 1.0
    assert np.log(smallest_effect(0.1, 10_000)) == pytest.approx(0.1 * (1 + 0.8416 / 1.96), rel=1e-3)


@pytest.mark.slow
@given(blocks)
def test_swapping_the_arms_gives_the_reciprocal(pairs: list[tuple[float, float]]) -> None:
    baseline, candidate = np.array(pairs).T
    there, back = paired_ratio(log_ratios(baseline, candidate)), paired_ratio(log_ratios(candidate, baseline))
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert back.low == pytest.approx(1 / there.high)
    assert back.p_value == there.p_value


@given(blocks, st.floats(0.01, 100))
@pytest.mark.slow
def test_a_slower_clock_changes_nothing(pairs: list[tuple[float, float]], factor: float) -> None:
    baseline, candidate = np.array(pairs).T
    plain = paired_ratio(log_ratios(baseline, candidate))
    assert paired_ratio(log_ratios(baseline * factor, candidate * factor)).ratio == pytest.approx(plain.ratio)


def test_equal_arms_have_ratio_one_and_no_evidence() -> None:
    times = np.array([3.0, 1.0, 2.0])
    found = paired_ratio(log_ratios(times, times))
    assert (found.ratio, found.low, found.high, found.p_value) == (1.0, 1.0, 1.0, 1.0)


def test_arms_that_do_not_pair_are_refused() -> None:
    with pytest.raises(ValueError, match="one positive time per arm"):
        log_ratios(np.array([1.0, 2.0]), np.array([1.0]))
    with pytest.raises(ValueError, match="one positive time per arm"):
        log_ratios(np.array([1.0]), np.array([0.0]))
    with pytest.raises(ValueError, match="at least two pairs"):
        paired_ratio(np.array([0.1]))
