"""A finished run whose own tables were damaged later: nothing is computed from what is left of them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.errors import Unavailable
from pipeline_lab.report.overview import overview
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import SAMPLES, STEPS, find_damage, read_table
from pipeline_lab.runs.store import samples_folder
from tests.support.run_folders import set_state

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Return a copy of a sample without its traces, which are not needed here."""
    samples = samples_folder()
    assert samples is not None
    copy = tmp_path_factory.mktemp("store") / "sample-baseline"
    shutil.copytree(samples / "sample-baseline", copy, ignore=shutil.ignore_patterns("analysis", "plugins"))
    return RunFolder(copy)


@pytest.fixture
def run(whole: RunFolder, tmp_path: Path) -> RunFolder:
    shutil.copytree(whole.path, tmp_path / "run")
    return RunFolder(tmp_path / "run")


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def nothing(_: bytes) -> bytes:
    return b""


def flipped(data: bytes) -> bytes:
    return data[:-400] + bytes(200) + data[-200:]


@pytest.mark.parametrize("damage", [half, nothing, flipped])
def test_numbers_that_rest_on_damaged_steps_say_so(run: RunFolder, damage: Callable[[bytes], bytes]) -> None:
    before = diagnose(run.path)
    assert not before.source.damaged_tables
    assert not isinstance(before.job_steps, Unavailable)
    run.steps.write_bytes(damage(run.steps.read_bytes()))
    found = diagnose(run.path)
    assert isinstance(found.job_steps, Unavailable)
    assert found.job_steps.reason.startswith("steps.arrows of this run is damaged: ")
    assert found.source.damaged_tables == (found.job_steps.reason,)
    assert [finding.kind for finding in found.findings].count("damaged-tables") == 1
    assert found.to_json()["source"]["damaged_tables"] == [found.job_steps.reason]
    assert overview(found).warnings == (f"{found.job_steps.reason} Numbers that rest on it are not given.",)


@pytest.mark.parametrize("damage", [half, nothing])
def test_numbers_that_rest_on_damaged_samples_say_so(run: RunFolder, damage: Callable[[bytes], bytes]) -> None:
    run.samples.write_bytes(damage(run.samples.read_bytes()))
    found = diagnose(run.path)
    for result in (found.file_sampling, found.job_steps):  # throughput counts the samples
        assert isinstance(result, Unavailable)
        assert "samples.arrows of this run is damaged" in result.reason


def without_its_end(data: bytes) -> bytes:
    return data[: data.rindex(b"\n", 0, -1) + 1]


def torn_inside(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join([*lines[:5], lines[5][:-20] + b"\n", *lines[6:]])


@pytest.mark.parametrize("damage", [half, nothing, without_its_end, torn_inside])
def test_numbers_that_rest_on_damaged_events_say_so(run: RunFolder, damage: Callable[[bytes], bytes]) -> None:
    assert not isinstance(diagnose(run.path).calibration, Unavailable)
    run.events.write_bytes(damage(run.events.read_bytes()))
    found = diagnose(run.path)
    assert isinstance(found.calibration, Unavailable)
    assert found.calibration.reason.startswith("events.jsonl of this run is damaged: ")
    assert found.source.damaged_tables == (found.calibration.reason,)
    assert not isinstance(found.job_steps, Unavailable)


def test_a_job_that_was_killed_leaves_tables_without_an_end(run: RunFolder) -> None:
    run.steps.write_bytes(run.steps.read_bytes()[:-8])
    run.events.write_bytes(half(run.events.read_bytes()))
    set_state(run, RunState.FAILED, "killed")
    found = diagnose(run.path)
    assert not found.source.damaged_tables
    assert not isinstance(found.job_steps, Unavailable)


def test_what_is_left_is_counted(run: RunFolder) -> None:
    assert find_damage(run.steps, STEPS) == ""
    assert find_damage(run.path / "never-written.arrows", SAMPLES) == ""
    rows = read_table(run.steps, STEPS).num_rows
    run.steps.write_bytes(run.steps.read_bytes()[:-8])
    assert f"only its first {rows:,} rows can be read" in find_damage(run.steps, STEPS)


@pytest.mark.parametrize("text", ["{", '{"files": 3}', "[]"])
def test_a_damaged_list_of_files_costs_only_what_rests_on_it(run: RunFolder, text: str) -> None:
    run.files.write_text(text)
    found = diagnose(run.path)
    assert not isinstance(found.job_steps, Unavailable)
    assert isinstance(found.file_sampling, Unavailable)
    assert "files.json of the run is damaged" in found.file_sampling.reason
    assert found.source.damaged_tables == (found.file_sampling.reason,)


def test_a_damaged_recipe_costs_the_lines_of_the_script_alone(run: RunFolder) -> None:
    before = diagnose(run.path).to_json()
    run.recipe.write_text('{"calls": [')
    assert diagnose(run.path).to_json()["tf_data"] == before["tf_data"]
