import json
from pathlib import Path

import pytest

from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore
from tests.cli.support import call
from tests.support import run_folders
from tests.support.run_folders import MS, make_run


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "profiles")


@pytest.fixture
def baseline(store: RunStore) -> RunFolder:
    return make_run(store)


@pytest.fixture
def slower(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """Make a run whose steps take 30 ms instead of 20."""
    monkeypatch.setattr(run_folders, "STEP_NS", 30 * MS)
    return make_run(store, "optimised")


@pytest.mark.slow
def test_what_differs_comes_before_the_numbers(store: RunStore, baseline: RunFolder, slower: RunFolder) -> None:
    ended = call("compare", baseline.id, slower.id, "--store", store.root)
    assert ended.exit_code == 0
    parts = [
        "optimised took 50 % more time per step than baseline",
        "These runs were recorded separately.",
        "Options that differ",
        "pipeline.read.mode",
        "Numbers",
        "\nMedian step  ",  # its row
    ]
    places = [ended.stdout.index(part) for part in parts]
    assert places == sorted(places)


def test_json_is_one_document(store: RunStore, baseline: RunFolder, slower: RunFolder) -> None:
    document = json.loads(call("compare", baseline.id, slower.id, "--json", "--store", store.root).stdout)
    assert document["step_time"][0]["ratio"] == pytest.approx(1.5, abs=0.01)
    assert "gate" not in document


@pytest.mark.parametrize(
    ("arguments", "code", "answer"),
    [
        (["--fail-if-slower", "5%"], 4, "undecided"),
        (["--fail-if-slower", "5%", "--allow-drift"], 3, "crossed"),
        (["--fail-if-slower", "60"], 0, "passed"),
    ],
)
def test_the_gate_has_its_exit_codes(store, baseline, slower, arguments, code, answer) -> None:
    ended = call("compare", baseline.id, slower.id, *arguments, "--json", "--store", store.root)
    assert ended.exit_code == code
    gate = json.loads(ended.stdout)["gate"]
    assert gate["answer"] == answer
    assert gate["sentence"] in ended.stderr.replace("\n", " ")


def test_a_wrong_limit_is_wrong_usage(baseline: RunFolder) -> None:
    ended = call("compare", baseline.path, baseline.path, "--fail-if-slower", "slow")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "'slow' is not a limit" in ended.stderr


def test_drift_is_allowed_of_a_limit_alone(baseline: RunFolder) -> None:
    ended = call("compare", baseline.path, baseline.path, "--allow-drift")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "add it, such as --fail-if-slower 5%" in ended.stderr


def test_a_run_compares_with_itself_by_path(baseline: RunFolder) -> None:
    ended = call("compare", baseline.path, baseline.path)
    assert "practically the same time" in ended.stdout


@pytest.mark.slow
def test_many_runs_are_shown_one_per_row(store: RunStore, baseline: RunFolder, slower: RunFolder) -> None:
    ended = call("compare", baseline.id, *[slower.id] * 5, "--store", store.root)
    assert ended.exit_code == 0
    assert "optimised (5)" in ended.stdout


@pytest.mark.slow
def test_a_report_is_written_beside(tmp_path: Path, baseline: RunFolder, slower: RunFolder) -> None:
    ended = call("compare", baseline.path, slower.path, "--html", tmp_path / "report.html", "--json")
    assert json.loads(ended.stdout)
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.slow
def test_the_stages_of_bundled_samples_stand_side_by_side() -> None:
    ended = call("compare", "sample-baseline", "sample-optimised")
    table = ended.stdout[ended.stdout.index("\nStages\n") :]
    assert "Ran in baseline" in table
    assert "ShuffleAndRepeat" in table  # what TensorFlow made of shuffle and repeat


def test_what_is_not_there_is_one_sentence(tmp_path: Path, baseline: RunFolder) -> None:
    ended = call("compare", baseline.path, "gone", "--store", tmp_path)
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert "no run of that id" in ended.stderr
