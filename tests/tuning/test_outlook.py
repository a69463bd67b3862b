import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.tuning.outlook import NEAR_BEST, Limits, Predicted, SamplingLimit, mixes_worse, pareto_set, pick
from pipeline_lab.tuning.space import Configuration, make_space
from tests.support.presets import AUDIO_BUCKETED, BASELINE, COVERING_SHUFFLE, UNEQUAL_FILES
from tests.support.true_times import NAIVE, SMALL
from tests.tuning.test_space import at

CORES = 2


def sampling(start: RunOptions) -> SamplingLimit:
    return SamplingLimit(start, np.array(start.file_sizes), CORES)


def test_memory_and_threads_are_limits() -> None:
    limits = Limits(memory_bytes=100, threads=4)
    assert limits.refuse(100, 4) is None
    assert limits.refuse(101, 4) == "needs too much memory"
    assert limits.refuse(100, 5) == "needs too many threads"
    assert Limits().refuse(10**15, 10**6) is None


def test_what_does_not_touch_the_order_mixes_as_before() -> None:
    start = UNEQUAL_FILES.options
    assert not sampling(start).is_worse(at(start, map_calls="8", pool_threads="8", prefetch="2", map_over="batch"))


def test_files_one_after_the_other_mix_worse_than_in_turns() -> None:
    assert sampling(UNEQUAL_FILES.options).is_worse(at(UNEQUAL_FILES.options, files_at_once="1"))


def test_files_in_turns_mix_no_worse_than_one_after_the_other() -> None:
    start = BASELINE.options
    assert not sampling(start).is_worse(at(start, files_at_once="4"))


def test_a_shuffle_that_covers_the_data_makes_the_reading_order_indifferent() -> None:
    start = COVERING_SHUFFLE.options
    assert not sampling(start).is_worse(at(start, files_at_once="1"))


def test_clips_that_are_sorted_by_length_mix_as_well_whatever_the_reading_order() -> None:
    start = AUDIO_BUCKETED.options  # its shuffle covers the data
    assert not sampling(start).is_worse(at(start, files_at_once="4"))


def test_another_order_counts_as_worse_where_the_files_are_not_known() -> None:
    unknown = SamplingLimit(BASELINE.options, None, CORES)
    assert unknown.is_worse(at(BASELINE.options, files_at_once="4"))
    assert not unknown.is_worse(at(BASELINE.options, prefetch="2"))


def test_a_number_that_cannot_be_told_is_no_good_mixing() -> None:
    nan = float("nan")
    poor, same = np.array([[0.5, 0.4]] * 8), np.array([[0.5, nan]] * 8)
    assert not mixes_worse(poor, poor)
    assert not mixes_worse(same, same)
    assert mixes_worse(poor, same)  # as good in what is known, but nobody knows the rest
    assert mixes_worse(same, poor)
    assert mixes_worse(same, same + 0.1)
    assert not mixes_worse(same + 0.1, same)


CONFIGURATIONS = tuple(make_space(NAIVE, only=SMALL).configurations())
COSTS = st.tuples(st.floats(1.0, 100.0), st.integers(0, 5), st.integers(1, 5))
PREDICTED = st.lists(COSTS, min_size=1, max_size=len(CONFIGURATIONS)).map(
    lambda costs: [Predicted(where, *cost) for where, cost in zip(CONFIGURATIONS, costs, strict=False)]
)


@pytest.mark.slow
@given(PREDICTED)
def test_everything_is_dominated_by_or_as_cheap_as_something_of_the_pareto_set(predicted: list[Predicted]) -> None:
    front = pareto_set(predicted)
    assert not any(one.dominates(other) for one in front for other in front)
    assert all(any(one.dominates(each) or one.costs == each.costs for one in front) for each in predicted)


@pytest.mark.slow
@given(PREDICTED, st.integers(1, 8))
def test_picks_are_near_the_best_and_the_best_is_first(predicted: list[Predicted], count: int) -> None:
    picks = pick(predicted, count)
    best = min(each.step_ns for each in predicted)
    assert picks[0].step_ns == best
    assert len(picks) <= count
    assert len({each.configuration.name for each in picks}) == len(picks)
    assert all(each.step_ns <= best * (1 + NEAR_BEST) for each in picks)


def test_what_the_model_thinks_equal_is_picked_far_apart() -> None:
    tied = [Predicted(each, 10.0, 0, 1) for each in CONFIGURATIONS]
    picks = [each.configuration for each in pick(tied, 4)]
    assert min(_distances(picks)) >= 2


def _distances(picks: list[Configuration]) -> list[int]:
    return [one.distance(other) for place, one in enumerate(picks) for other in picks[:place]]


def test_nothing_to_pick_from_gives_nothing() -> None:
    assert pick([], 3) == []
    assert pick([Predicted(CONFIGURATIONS[0], 1.0, 0, 1)], 0) == []
