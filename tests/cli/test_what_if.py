"""Predictions on the command line, from a run whose numbers add up in the head."""

import json

import pytest

from pipeline_lab.advice.forecasts import plan_race
from pipeline_lab.cli.commands.what_if import NOT_PREDICTED
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.runs.launch import launcher
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore
from tests.cli.support import call
from tests.support.lab import Lab
from tests.support.measured import mapped, measured, options
from tests.support.measured_run import make_measured_run, make_watched_run
from tests.support.races import PlantedArm, make_race
from tests.support.recorded_run import write_run


def test_the_step_time_comes_first_then_what_limits_it(lab: Lab) -> None:
    folder = make_measured_run(lab.store)
    ended = call("what-if", folder.id, "--set", "pipeline.map.num_parallel_calls=2", "--store", lab.store.root)
    assert ended.exit_code == 0
    assert "Predicted: 10 ms a step instead of 20 ms, 50 % less time for each example." in ended.stdout
    assert "pipeline.map.num_parallel_calls = 2 (was none)" in ended.stdout
    assert [line.split()[0] for line in ended.stdout.splitlines() if " ms" in line][1:3] == ["map", "training"]


def test_json_is_one_object(lab: Lab) -> None:
    folder = make_measured_run(lab.store)
    ended = call(
        "what-if", folder.id, "--set", "pipeline.map.num_parallel_calls=4", "--store", lab.store.root, "--json"
    )
    document = json.loads(ended.stdout)
    assert document["run"] == folder.id
    assert document["prediction"]["step_ms"] == 5.0
    assert document["prediction"]["gain_percent"] == 75.0
    assert document["option_changes"] == ["pipeline.map.num_parallel_calls = 4 (was none)"]


def test_a_prediction_says_over_which_epochs_it_speaks(lab: Lab) -> None:
    folder = make_measured_run(lab.store, cold_steps=30)
    asked = ("what-if", folder.id, "--store", lab.store.root)
    assert "! The run is used from step 30 on, after its first epoch" in " ".join(call(*asked).stdout.split())
    document = json.loads(call(*asked, "--json").stdout)
    assert (document["measured"]["from_step"], document["measured"]["step_ms"]) == (30, 20.0)
    assert "after its first epoch" in document["prediction"]["notes"][0]


def test_what_cannot_be_predicted_says_why(lab: Lab) -> None:
    folder = make_measured_run(lab.store)
    ended = call("what-if", folder.id, "--set", "workload.element_bytes=9", "--store", lab.store.root)
    assert ended.exit_code == NOT_PREDICTED
    assert "Nothing can be predicted. The cost of workload.element_bytes" in ended.stdout
    assert f"{folder.id} --race --set workload.element_bytes=9" in ended.stderr


def test_predictions_of_the_store_stand_beside_what_their_races_found(lab: Lab) -> None:
    folder = make_measured_run(lab.store)
    asked = ("what-if", folder.id, "--store", lab.store.root)
    assert json.loads(call(*asked, "--json").stdout)["raced_predictions"] is None
    race = plan_race(measured(), [options(mapped(2))], pairs=30)
    make_race(lab.store, PlantedArm([10.0] * 30), PlantedArm([5.0] * 30), options=race)
    assert "Predictions of this store that were raced: 1." in call(*asked).stdout
    raced = json.loads(call(*asked, "--json").stdout)["raced_predictions"]
    assert (raced["count"], raced["right_direction"]) == (1, 1)
    assert raced["predictions"][0]["predicted"] == 0.5


def test_a_job_that_is_not_ours_says_why_and_leaves_with_5(lab: Lab) -> None:
    folder = write_run(lab.store.root / "other")
    asked = ("what-if", folder.id, "--set", "pipeline.map.num_parallel_calls=4", "--store", lab.store.root)
    ended = call(*asked)
    assert ended.exit_code == NOT_PREDICTED
    assert "Nothing can be predicted. The log does not say what options" in ended.stdout
    ended = call(*asked, "--json")
    assert ended.exit_code == NOT_PREDICTED
    document = json.loads(ended.stdout)
    assert (document["run"], document["option_changes"], document["raced_predictions"]) == (folder.id, [], None)
    for part in ("measured", "prediction"):
        assert "does not say what options" in document[part]["unavailable"]


def test_a_race_of_options_that_nobody_knows_is_refused_in_a_sentence(lab: Lab) -> None:
    folder = write_run(lab.store.root / "other")
    ended = call("what-if", folder.id, "--race", "--store", lab.store.root)
    assert ended.exit_code == 2
    assert "does not say what options" in ended.stderr


def test_a_run_that_can_predict_nothing_races_all_the_same(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[RaceOptions] = []

    def launch(store: RunStore, race: RaceOptions) -> RunFolder:
        asked.append(race)
        return make_race(store, PlantedArm([10.0] * 30), PlantedArm([5.0] * 30), options=race)

    monkeypatch.setattr(launcher, "launch", launch)
    folder = make_measured_run(lab.store)
    folder.model.unlink()
    arguments = (
        "what-if",
        folder.id,
        "--set",
        "pipeline.map.num_parallel_calls=4",
        "--race",
        "--store",
        lab.store.root,
    )
    document = json.loads(call(*arguments, "--json").stdout)
    assert "unavailable" in document["prediction"]
    assert document["race"]["candidates"][0]["outcome"] == "faster"
    told = call(*arguments).stdout
    assert "Nothing can be predicted." in told
    assert "map.num_parallel_calls = 4 is faster" in " ".join(told.split())
    assert all('"num_parallel_calls":4' in race.arms[1].model_dump_json() for race in asked)


def test_changes_of_a_watched_script_are_listed_with_their_lines(lab: Lab) -> None:
    folder = make_watched_run(lab.store)
    ended = call("what-if", folder.id, "--store", lab.store.root)
    assert ended.exit_code == 0
    assert "The step takes 20 ms, with free input 5 ms" in ended.stdout
    document = json.loads(call("what-if", folder.id, "--store", lab.store.root, "--json").stdout)
    first = document["changes"][0]
    assert (first["place"]["name_line"], first["before"]) == (41, ".map(load)")
    assert first["after"] == ".map(load, num_parallel_calls=tf.data.AUTOTUNE)"
    assert first["prediction"]["gain_percent"] == 75.0
    assert document["prediction"] is None


def test_changes_that_are_named_are_predicted_together(lab: Lab) -> None:
    folder = make_watched_run(lab.store)
    asked = ("what-if", folder.id, "--store", lab.store.root)
    ended = call(*asked, "--change", "train.py:41 num_parallel_calls=2")
    assert "Predicted: 10 ms a step instead of 20 ms, 50 % less" in ended.stdout
    wrong = call(*asked, "--change", "train.py:99 cache")
    assert wrong.exit_code != 0
    assert "no dataset is made at train.py:99" in wrong.stderr


def test_a_change_of_a_script_is_refused_for_a_run_with_options(lab: Lab) -> None:
    folder = make_measured_run(lab.store)
    ended = call("what-if", folder.id, "--store", lab.store.root, "--change", "prefetch")
    assert "--change is for watched scripts" in ended.stderr
