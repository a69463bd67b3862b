"""What the app may launch agrees with what the job then reads."""

from pathlib import Path

import pytest

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.run_options import RunOptions, set_options
from pipeline_lab.ui.serving import access


@pytest.fixture
def allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Start in a folder that may be opened; the user's home lies beside it."""
    (folder := tmp_path / "allowed").mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIPELINE_LAB_PATHS", str(folder))
    return folder


def images(data: str, **places: str) -> RunOptions:
    chosen = [*places.items(), ("data", data)]
    return set_options(find_preset("baseline").options, [(f"workload.{name}", value) for name, value in chosen])


def test_a_folder_of_the_users_home_is_the_one_that_the_job_will_read(allowed: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(OptionsError, match="home/photos lies outside the folders"):
        access.check_launch(images("folder", folder="~/photos"))
    monkeypatch.setenv("PIPELINE_LAB_PATHS", str(allowed.parent / "home"))
    assert access.check_launch(images("folder", folder="~/photos"))


@pytest.mark.usefixtures("allowed")
def test_a_home_that_is_not_there_is_a_sentence():
    with pytest.raises(OptionsError, match="home directory"):
        access.check_launch(images("folder", folder="~nobody-of-that-name/photos"))


def test_folders_and_patterns_inside_the_allowed_ones_may_be_read(allowed: Path):
    for options in (
        images("folder", folder=str(allowed / "photos")),
        images("folder", folder="photos"),
        images("files", pattern=f"{allowed}/*.tfrecord"),
    ):
        assert access.check_launch(options) is options
