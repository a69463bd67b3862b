from itertools import accumulate

import numpy as np
import pytest

from pipeline_lab.statistics.effective_sample import autocorrelation_time, difference_interval, estimate_mean

RUN_IN = 2000


def correlated(count: int, memory: float, generator: np.random.Generator) -> np.ndarray:
    """Return an AR(1) series of mean 0 and variance 1."""
    noise = generator.standard_normal(count + RUN_IN)
    series = list(accumulate(noise, lambda last, new: memory * last + new))
    return np.asarray(series[RUN_IN:]) * np.sqrt(1 - memory**2)


def test_independent_values_count_for_themselves() -> None:
    values = np.random.default_rng(0).standard_normal(4000)
    assert autocorrelation_time(values) == pytest.approx(1.0, abs=0.15)
    assert estimate_mean(values).effective_count > 2500


@pytest.mark.parametrize(("memory", "neighbors"), [(0.5, 3.0), (0.8, 9.0), (0.9, 19.0)])
def test_an_ar_1_series_has_the_autocorrelation_time_of_its_textbook(memory: float, neighbors: float) -> None:
    values = correlated(60_000, memory, np.random.default_rng(1))
    assert autocorrelation_time(values) == pytest.approx(neighbors, rel=0.2)


def test_values_that_take_turns_are_never_worth_more_than_independent_ones() -> None:
    assert autocorrelation_time(np.tile([0.0, 1.0], 100)) == 1.0


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0, 3.0], [5.0] * 50])
def test_short_and_constant_series_have_no_autocorrelation(values: list[float]) -> None:
    assert autocorrelation_time(np.array(values)) == 1.0


def test_a_constant_series_is_known_exactly() -> None:
    estimate = estimate_mean(np.full(40, 3.0))
    assert (estimate.mean, estimate.standard_error, estimate.effective_count) == (3.0, 0.0, 40.0)
    assert difference_interval(estimate, estimate_mean(np.full(40, 5.0)), 0.95) == (2.0, 2.0)


def test_a_drifting_series_is_not_enough() -> None:
    assert not estimate_mean(np.linspace(0, 1, 300)).is_enough


@pytest.mark.parametrize(("memory", "count"), [(0.0, 300), (0.65, 300), (0.9, 600), (0.98, 3000)])
def test_intervals_of_equal_series_cover_0_about_as_often_as_they_say(memory: float, count: int) -> None:
    generator = np.random.default_rng(2)
    covered = 0
    for _ in range(200):
        first, second = (estimate_mean(correlated(count, memory, generator)) for _ in range(2))
        low, high = difference_interval(first, second, 0.95)
        covered += low <= 0 <= high
    assert covered >= 181  # a coverage of 95 % gives fewer in one of a hundred runs


def test_the_interval_is_centred_on_the_difference_and_widens_with_confidence() -> None:
    generator = np.random.default_rng(3)
    first, second = (estimate_mean(correlated(500, 0.5, generator) + shift) for shift in (0.0, 1.0))
    narrow, wide = (difference_interval(first, second, confidence) for confidence in (0.9, 0.99))
    assert sum(narrow) / 2 == pytest.approx(second.mean - first.mean)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
