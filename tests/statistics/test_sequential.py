import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.race.noise import NOISES
from pipeline_lab.statistics.sequential import SequentialPlan, SequentialResult, sequential_ratio

SMALL = SequentialPlan(max_pairs=12, first_look=6, look_every=3, paths=500)
pairs_of_logs = st.lists(st.floats(-2, 2).map(lambda value: round(value, 3)), min_size=12, max_size=12).map(np.array)


def _at_the_end(log_ratios: np.ndarray, plan: SequentialPlan = SMALL) -> SequentialResult:
    result = sequential_ratio(log_ratios, plan)
    assert result is not None
    return result


def test_the_last_look_is_always_the_last_pair() -> None:
    assert SequentialPlan(max_pairs=9, first_look=4, look_every=2).looks == (4, 6, 8, 9)
    assert SequentialPlan(max_pairs=3, first_look=6, look_every=2).looks == (3,)


def test_nothing_is_said_before_the_first_look_and_between_two_looks_the_last_one_counts() -> None:
    assert sequential_ratio(np.zeros(5), SMALL) is None
    seen = np.linspace(-0.1, 0.1, 8)
    assert sequential_ratio(seen, SMALL) == sequential_ratio(seen[:6], SMALL)


def test_identical_arms_are_found_identical() -> None:
    found = _at_the_end(np.zeros(12))
    assert (found.ratio, found.low, found.high, found.p_value) == (1.0, 1.0, 1.0, 1.0)


def test_few_pairs_exclude_nothing() -> None:
    found = _at_the_end(np.full(6, 0.5), replace(SMALL, max_pairs=30))
    assert (found.low, found.high) == (0.0, np.inf)


def test_a_steady_difference_is_found_and_its_size_is_right() -> None:
    found = _at_the_end(np.log(1.2) + 0.01 * np.array([1, -1, 2, -2, 3, -3, 1, -1, 2, -2, 3, -3]))
    assert found.ratio == pytest.approx(1.2, rel=0.01)
    assert 1.15 < found.low < 1.2 < found.high < 1.25
    assert found.p_value < 0.01


def test_one_disturbed_pair_does_not_hide_a_difference() -> None:
    plan = replace(SMALL, max_pairs=18)
    steady = np.log(1.2) + np.tile([0.01, -0.01, 0.02, -0.02, 0.03, -0.03], 3)
    assert _at_the_end(steady, plan).low > 1.15
    assert _at_the_end(np.append(steady[:-1], -3.0), plan).low > 1.1


@pytest.mark.slow
def test_of_all_orders_that_the_coins_can_give_at_most_alpha_are_called_different() -> None:
    plan = SequentialPlan(max_pairs=8, first_look=4, look_every=2, alpha=0.2, paths=1000)
    sizes = np.array([0.3, 0.01, 0.2, 0.05, 1.5, 0.4, 0.02, 0.6])
    called = sum(
        any(_excludes_one(_at_the_end(sizes[:look] * signs[:look], plan)) for look in plan.looks)
        for signs in itertools.product((-1, 1), repeat=8)
    )
    assert 0.1 < called / 2**8 <= 0.2 + 0.02  # the second part is the spread of 1,000 drawn paths


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(pairs_of_logs)
def test_swapping_the_arms_gives_the_reciprocal(log_ratios: np.ndarray) -> None:
    there, back = _at_the_end(log_ratios), _at_the_end(-log_ratios)
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert back.p_value == there.p_value
    assert back.low == pytest.approx(0 if np.isinf(there.high) else 1 / there.high)
    assert back.high == pytest.approx(np.inf if there.low == 0 else 1 / there.low)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(pairs_of_logs)
def test_the_interval_holds_its_estimate_and_excludes_one_only_with_a_small_p_value(log_ratios: np.ndarray) -> None:
    found = _at_the_end(log_ratios)
    assert found.low <= found.ratio * (1 + 1e-9)
    assert found.ratio <= found.high * (1 + 1e-9)
    assert found.p_value <= found.alpha or not _excludes_one(found)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(pairs_of_logs, st.sampled_from([0.5, 2.0]))
def test_a_factor_on_one_arm_is_a_factor_on_the_answer(log_ratios: np.ndarray, factor: float) -> None:
    plain, scaled = _at_the_end(log_ratios), _at_the_end(log_ratios + np.log(factor))
    assert scaled.ratio == pytest.approx(plain.ratio * factor)
    assert scaled.low == pytest.approx(plain.low * factor, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_equal_arms_are_seldom_called_different_however_the_machine_varies(noise: object) -> None:
    from benchmarks.race.simulate import score_races  # and scipy.stats, which every process that collects would load

    score = score_races(noise, 1.0, races=40, plan=SMALL, seed=3)
    assert score.called_different <= 7 / 40  # more than 7 of 40 happen once in 5,000 tries at 5 %


@pytest.mark.slow
def test_a_planted_difference_is_found_on_a_quiet_machine() -> None:
    from benchmarks.race.simulate import score_races

    quiet = next(noise for noise in NOISES if noise.name == "quiet")
    score = score_races(quiet, 1.2, races=20, plan=SequentialPlan(paths=1000), seed=3)
    assert (score.called_different, score.wrong_way) == (1.0, 0.0)
    assert score.pairs < 15


def test_a_plan_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="0 < alpha < 1"):
        SequentialPlan(alpha=0)


def _excludes_one(result: SequentialResult) -> bool:
    return result.low > 1 or result.high < 1
