import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.tuning.halving import RUNGS, ArmVerdict, Fate, Ratio, halve, judge_arms

MARGIN = 0.03
TIMES = st.lists(st.floats(1.0, 10.0), min_size=1, max_size=8)


def names(count: int) -> list[str]:
    return [f"arm {number}" for number in range(count)]


def equal_cost(_arm: str) -> tuple[float, ...]:
    return (0.0,)


class Truth:
    """Races whose intervals hold the truth, as wide as they are told to be and tighter with every rung."""

    def __init__(self, times: Sequence[float], width: float, shift: float = 0.0) -> None:
        self.times = dict(zip(names(len(times)), times, strict=True))
        self.width, self.shift = width, shift
        self.reports: list[Sequence[ArmVerdict]] = []
        self.leaders: list[str] = []

    def race(self, leader: str, others: Sequence[str], pairs: int) -> Mapping[str, Ratio | None]:
        self.leaders.append(leader)
        half = self.width * math.sqrt(RUNGS[0] / pairs)
        return {arm: self._ratio(arm, leader, half) for arm in others}

    def _ratio(self, arm: str, leader: str, half: float) -> Ratio:
        true = self.times[arm] / self.times[leader]
        seen = true * math.exp(self.shift * half)
        return Ratio(seen, min(seen, true) * math.exp(-half), max(seen, true) * math.exp(half))

    def report(self, _rung: int, _leader: str, verdicts: Sequence[ArmVerdict]) -> None:
        self.reports.append(verdicts)

    def search(self) -> str:
        return halve(names(len(self.times)), self.race, self.report, equal_cost, margin=MARGIN)


@pytest.mark.slow
@given(TIMES)
def test_sharp_races_find_the_best_arm(times: list[float]) -> None:
    truth = Truth(times, width=0.001)
    assert truth.times[truth.search()] <= min(times) * (1 + MARGIN)


@pytest.mark.slow
@given(TIMES, st.floats(0.001, 1.0), st.floats(-0.9, 0.9))
def test_an_arm_whose_interval_holds_the_truth_is_never_called_slower_when_it_is_best(
    times: list[float], width: float, shift: float
) -> None:
    truth = Truth(times, width, shift)
    truth.search()
    for verdicts in truth.reports:
        fastest = min(truth.times[each.arm] for each in verdicts)
        assert all(truth.times[each.arm] > fastest for each in verdicts if each.fate is Fate.SLOWER)


@given(TIMES, st.floats(0.001, 1.0))
def test_every_race_has_one_leader_a_fate_for_each_arm_and_half_as_many_as_the_one_before(
    times: list[float], width: float
) -> None:
    truth = Truth(times, width)
    winner = truth.search()
    field = len(times)
    for verdicts in truth.reports:
        assert len(verdicts) == field == len({each.arm for each in verdicts})
        assert [each.fate for each in verdicts].count(Fate.LEADS) == 1
        field = sum(each.races_on for each in verdicts)
        assert field <= math.ceil(len(verdicts) / 2)
    assert not truth.reports or winner == next(each.arm for each in truth.reports[-1] if each.fate is Fate.LEADS)


def test_the_leader_of_a_race_leads_the_next_one() -> None:
    truth = Truth([4.0, 3.0, 2.0, 1.0, 5.0, 6.0], width=1.0)
    assert truth.search() == "arm 3"
    assert truth.leaders == ["arm 0", "arm 3", "arm 3"]


def test_the_leader_wins_when_there_is_no_time_for_another_race() -> None:
    truth = Truth([4.0, 3.0, 2.0, 1.0, 5.0, 6.0], width=1.0)
    winner = halve(names(6), truth.race, truth.report, equal_cost, margin=MARGIN, is_spent=lambda: True)
    assert winner == "arm 3"
    assert len(truth.reports) == 1


def test_one_arm_wins_without_a_race() -> None:
    truth = Truth([2.0], width=0.1)
    assert truth.search() == "arm 0"
    assert not truth.reports


def test_of_equally_fast_arms_the_cheapest_wins() -> None:
    truth = Truth([1.0, 0.99, 1.5], width=0.05)
    cost = {"arm 0": (10.0, 2.0), "arm 1": (80.0, 2.0), "arm 2": (0.0, 0.0)}
    winner = halve(names(3), truth.race, truth.report, cost.__getitem__, margin=MARGIN)
    assert winner == "arm 0"
    assert {each.arm: each.fate for each in truth.reports[-1]} == {"arm 0": Fate.LEADS, "arm 1": Fate.TIED}


def test_what_excludes_nothing_drops_nothing_for_certain() -> None:
    found = {"b": Ratio(2.0, 0.0, math.inf), "c": Ratio(3.0, 0.0, math.inf)}
    verdicts = judge_arms("a", found, equal_cost, margin=MARGIN, room=2)
    assert [(each.arm, each.fate) for each in verdicts] == [
        ("a", Fate.LEADS),
        ("b", Fate.KEPT),
        ("c", Fate.UNDECIDED),
    ]


def test_a_race_that_was_too_short_drops_and_ties_nobody_but_goes_on_with_what_seems_best() -> None:
    found = {arm: Ratio(ratio, 0.0, math.inf) for arm, ratio in (("a", 0.63), ("b", 0.83), ("c", 0.74))}
    costs = {"start": (0.0,), "a": (3.0,), "b": (1.0,), "c": (2.0,)}
    verdicts = judge_arms("start", found, costs.__getitem__, margin=MARGIN, room=2)
    assert [(each.arm, each.fate) for each in verdicts] == [
        ("a", Fate.LEADS),
        ("c", Fate.KEPT),
        ("b", Fate.UNDECIDED),
        ("start", Fate.UNDECIDED),
    ]


def test_an_arm_that_did_not_run_is_out_and_the_others_go_on() -> None:
    verdicts = judge_arms("a", {"b": None, "c": Ratio(0.5, 0.4, 0.6)}, equal_cost, margin=MARGIN, room=2)
    assert [(each.arm, each.fate) for each in verdicts] == [
        ("c", Fate.LEADS),
        ("a", Fate.SLOWER),
        ("b", Fate.FAILED),
    ]
