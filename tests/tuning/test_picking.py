from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.tuning.picking import NEAR_BEST, Predicted, pareto_set, pick
from pipeline_lab.tuning.space import Configuration, make_space
from tests.support.true_times import NAIVE, SMALL

CONFIGURATIONS = tuple(make_space(NAIVE, only=SMALL).configurations())
COSTS = st.tuples(st.floats(1.0, 100.0), st.integers(0, 5), st.integers(1, 5))
PREDICTED = st.lists(COSTS, min_size=1, max_size=len(CONFIGURATIONS)).map(
    lambda costs: [Predicted(where, *cost) for where, cost in zip(CONFIGURATIONS, costs, strict=False)]
)


@given(PREDICTED)
def test_everything_is_dominated_by_or_as_cheap_as_something_of_the_pareto_set(predicted: list[Predicted]) -> None:
    front = pareto_set(predicted)
    assert not any(one.dominates(other) for one in front for other in front)
    assert all(any(one.dominates(each) or one.costs == each.costs for one in front) for each in predicted)


@given(PREDICTED, st.integers(1, 8))
def test_picks_are_near_the_best_and_the_best_is_first(predicted: list[Predicted], count: int) -> None:
    picks = pick(predicted, count)
    best = min(each.step_ms for each in predicted)
    assert picks[0].step_ms == best
    assert len(picks) <= count
    assert len({each.configuration.name for each in picks}) == len(picks)
    assert all(each.step_ms <= best * (1 + NEAR_BEST) for each in picks)


def test_what_the_model_thinks_equal_is_picked_far_apart() -> None:
    tied = [Predicted(each, 10.0, 0, 1) for each in CONFIGURATIONS]
    picks = [each.configuration for each in pick(tied, 4)]
    assert min(_distances(picks)) >= 2


def _distances(picks: list[Configuration]) -> list[int]:
    return [one.distance(other) for place, one in enumerate(picks) for other in picks[:place]]


def test_nothing_to_pick_from_gives_nothing() -> None:
    assert pick([], 3) == []
    assert pick([Predicted(CONFIGURATIONS[0], 1.0, 0, 1)], 0) == []
