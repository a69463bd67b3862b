"""Predictions that are kept with their race, and how far off they were."""

from pathlib import Path

import pytest

from pipeline_lab.advice.forecasts import plan_race, read_forecasts, score
from pipeline_lab.comparison.race_result import read_race
from pipeline_lab.errors import OptionsError
from pipeline_lab.options.race_options import read_race_options
from pipeline_lab.runs.store import RunStore
from tests.support.measured import mapped, measured, options, with_workload
from tests.support.races import PlantedArm, make_race


def test_a_race_is_told_what_was_predicted():
    run = measured()
    race = plan_race(run, [options(mapped(2)), with_workload(options(), element_bytes=9)], pairs=8)
    assert race.predicted_ratios == (0.5, None)
    assert (race.predicted_ratio(0), race.predicted_ratio(1), race.predicted_ratio(2)) == (None, 0.5, None)
    assert race.arms[1].name == "pipeline.map.num_parallel_calls = 2".removeprefix("pipeline.")
    assert read_race_options(race.model_dump(mode="json")) == race


def test_there_is_one_prediction_for_each_candidate():
    race = plan_race(measured(), [options(mapped(2))])
    with pytest.raises(OptionsError, match="1 predicted_ratios for 2 candidates"):
        read_race_options({**race.model_dump(mode="json"), "arms": [race.arms[0].model_dump()] * 3})


@pytest.mark.slow
def test_what_was_predicted_is_held_against_what_was_raced(tmp_path: Path):
    """Raced 0.8 exactly; said 0.5, so it should have been 1.6 times as long, and 1.2, which is the wrong direction."""
    store = RunStore(tmp_path)
    candidates = [options(mapped(2)), with_workload(options(), map_ms=2.4)]
    race = plan_race(measured(), candidates, pairs=30)
    assert race.predicted_ratios == (0.5, 1.2)
    folder = make_race(store, PlantedArm([10.0] * 30), PlantedArm([8.0] * 30), PlantedArm([8.0] * 30), options=race)
    sentences = [candidate.sentence for candidate in read_race(folder).candidates]
    assert sentences[0].endswith("Predicted: 50 % less time.")
    assert sentences[1].endswith("Predicted: 20 % more time.")
    first, second = read_forecasts(store)
    assert (first.predicted, first.ratio) == (0.5, pytest.approx(0.8))
    assert first.error_percent == pytest.approx(60, abs=1)
    assert second.error_percent == pytest.approx(50, abs=1)
    total = score([first, second])
    assert (total.count, total.right_direction) == (2, 1)
    assert total.median_percent == pytest.approx(55, abs=1)


def test_races_that_nobody_predicted_say_nothing(tmp_path: Path):
    store = RunStore(tmp_path)
    folder = make_race(store, PlantedArm([10.0] * 8), PlantedArm([8.0] * 8))
    assert read_forecasts(store) == ()
    assert "Predicted" not in read_race(folder).candidates[0].sentence


def test_other_batch_sizes_are_predicted_per_example_as_they_are_raced():
    """A serial map takes 20 ms for ten examples and 40 ms for twenty, so an example takes as long as before."""
    race = plan_race(measured(), [options(batch=20)])
    assert race.per == "example"
    assert race.predicted_ratios == (pytest.approx(1.0),)
