import json
from pathlib import Path

import pytest
from click.testing import Result

from pipeline_lab.runs.record import RunState
from tests.cli.support import call
from tests.support.lab import Lab
from tests.support.presets import OPTIMISED
from tests.support.run_folders import make_run


def race(lab: Lab, behavior: str, *more: str | Path) -> Result:
    """Race two presets; the fake worker plants what the race's name says."""
    return call("race", "baseline", "optimised", "--name", behavior, "--store", lab.store.root, *more)


def test_a_race_says_who_is_faster_and_is_kept_as_a_run(lab: Lab) -> None:
    ended = race(lab, "race-faster")
    assert ended.exit_code == 0
    assert "optimised is faster than baseline" in ended.stdout
    assert "Rounds that counted: 30 of 30" in ended.stdout
    assert "have the same options" not in ended.stdout
    (record,) = [record for record in lab.store.runs() if record.name == "race-faster"]
    assert record.status.state is RunState.DONE
    assert record.id in ended.stderr


def test_a_race_of_the_same_twice_says_so(lab: Lab) -> None:
    ended = call("race", "baseline", "baseline", "--name", "race-undecided", "--store", lab.store.root)
    assert ended.exit_code == 0  # undecided is no failure without a gate
    assert "baseline (A) and baseline (B) have the same options" in " ".join(ended.stdout.split())


def test_json_is_one_object(lab: Lab) -> None:
    document = json.loads(race(lab, "race-faster", "--json").stdout)
    assert document["candidates"][0]["outcome"] == "faster"
    assert document["candidates"][0]["high"] < 1


@pytest.mark.parametrize(
    ("behavior", "code", "sentence"),
    [
        ("race-faster", 0, "No candidate is slower than baseline by more than 5 %."),
        ("race-slower", 3, "Slower than baseline by more than 5 %: optimised."),
        ("race-undecided", 4, "Whether optimised is slower by more than 5 % cannot be determined"),
    ],
)
def test_the_gate_has_an_exit_code_for_each_answer(lab: Lab, behavior: str, code: int, sentence: str) -> None:
    ended = race(lab, behavior, "--fail-if-slower", "5%")
    assert ended.exit_code == code
    assert sentence in ended.stderr


def test_options_are_set_in_every_arm(lab: Lab) -> None:
    settings = ("training.device=emulated", "training.step_ms=50", "training.read_every_step=true")
    ended = race(lab, "race-faster", *(word for setting in settings for word in ("--set", setting)))
    assert ended.exit_code == 0
    assert "The accelerator is emulated." in ended.stdout
    (record,) = lab.store.runs()
    for arm in (lab.store.read(record.id).options or {})["arms"]:
        assert (arm["training"]["device"], arm["training"]["step_ms"]) == ("emulated", 50)


def test_settings_reach_the_options(lab: Lab) -> None:
    race(lab, "race-faster", "--pairs", "12", "--block", "10", "--margin", "2%", "--seconds", "30")
    (record,) = [lab.store.read(run.id) for run in lab.store.runs() if run.name == "race-faster"]
    assert record.options is not None
    wanted = {"pairs": 12, "block_steps": 10, "margin_percent": 2.0, "max_seconds": 30.0}
    assert wanted.items() <= record.options.items()


def test_files_and_runs_can_race(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(OPTIMISED.options.model_copy(update={"name": ""}).to_json())
    run = make_run(lab.store, "baseline")
    ended = call("race", run.id, file, "--name", "race-faster", "--store", lab.store.root)
    assert ended.exit_code == 0
    assert "mine is faster than baseline" in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["baseline"], "at least two option sets"),
        (["baseline", "optimized"], "Did you mean optimised?"),
        (["baseline", "optimised", "--pairs", "2"], "pairs"),
        (["baseline", "optimised", "--fail-if-slower", "much"], "is not a limit"),
    ],
)
def test_wrong_usage_is_one_sentence(lab: Lab, arguments: list[str], sentence: str) -> None:
    ended = call("race", *arguments, "--store", lab.store.root)
    assert ended.exit_code == 2
    assert sentence in ended.stderr
    assert lab.store.runs() == []


def test_a_race_that_fails_is_one_sentence(lab: Lab) -> None:
    ended = race(lab, "fail")
    assert ended.exit_code == 1
    assert "failed: The file /data/a.tfrecord is damaged at record 7." in ended.stderr
