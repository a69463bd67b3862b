from pathlib import Path

import pytest

from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.contest import race_of_options
from pipeline_lab.tuning.deciding import Challenger, Meeting, Met
from pipeline_lab.tuning.space import make_space
from pipeline_lab.tuning.trials import TimeBudget, TrialLedger, Trials
from tests.support.true_times import NAIVE, SMALL
from tests.support.worlds import World, tune_options

CANDIDATES = {
    each.name: Challenger(each.options, None) for each in list(make_space(NAIVE, only=SMALL).configurations())[1:5]
}
BROKEN = next(iter(CANDIDATES))


def race(world: World) -> Met:
    trials = Trials(TrialLedger(world.store.root / "trials.jsonl"), world, lambda: False)
    budget = TimeBudget(600.0, trials)
    return Meeting(tune_options(), trials, world.store, budget, race_of_options).race(
        "all", NAIVE, CANDIDATES, 10, 0.2, keep_s=300.0
    )


def make_world(root: Path, seconds: float, machines: int = 1) -> World:
    pipeline = CANDIDATES[BROKEN].options.pipeline
    return World(
        RunStore(root), seconds=seconds, machines=machines, breaks=lambda options: options.pipeline == pipeline
    )


@pytest.mark.parametrize(("machines", "longest_s"), [(1, [45.0] * 4), (2, [180.0] * 2)])
def test_races_one_by_one_share_what_is_not_kept(tmp_path: Path, machines: int, longest_s: list[float]) -> None:
    """After a minute 240 s are free; each race of two may warm up for a quarter of its share."""
    world = make_world(tmp_path, 60.0, machines)
    found = race(world)
    assert {name for name, ratio in found.ratios.items() if ratio is None} == {BROKEN}
    alone = [each for each in world.measured if isinstance(each, RaceOptions) and "one by one" in each.name]
    assert [each.max_seconds for each in alone] == longest_s


def test_races_one_by_one_stop_when_the_time_is_spent(tmp_path: Path) -> None:
    world = make_world(tmp_path, 140.0)
    found = race(world)
    assert len(world.measured) == len(found.races) == 3  # all together, then two of four
    assert len([ratio for ratio in found.ratios.values() if ratio is not None]) == 1
