"""Who may talk to the app and what they may do: where others reach it, it is view only; code and paths need leave."""

import os
from pathlib import Path

import pytest
import streamlit as st

from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.run_options import RunOptions, own_options, set_options
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs import opened_logs, own_job_runs
from pipeline_lab.runs.launch.launcher import launch
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.saved_presets import remove_preset, save_preset
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui.new_run.origin import pack
from pipeline_lab.ui.serving import access, server, uploads
from pipeline_lab.ui.shared.field_editors import write_arguments
from pipeline_lab.workloads.module import parse_arguments
from tests.support.asgi import finish
from tests.support.run_folders import make_run, set_state
from tests.ui.conftest import texts
from tests.ui.serving.test_uploads import ask


@pytest.fixture
def address(monkeypatch):
    def serve(on: str) -> None:
        monkeypatch.setattr(st, "get_option", lambda name: on if name == "server.address" else None)

    return serve


@pytest.mark.parametrize(
    ("on", "variable", "may"),
    [
        ("localhost", None, True),
        ("0.0.0.0", None, False),
        (None, None, False),
        ("0.0.0.0", "1", True),
        ("0.0.0.0", "0", False),
        ("localhost", "0", False),
    ],
)
def test_only_this_machine_may_change_runs_unless_told(address, monkeypatch, on, variable, may):
    address(on)
    if variable is None:
        monkeypatch.delenv(access.CHANGES_VARIABLE, raising=False)
    else:
        monkeypatch.setenv(access.CHANGES_VARIABLE, variable)
    assert (access.why_read_only() == "") is may


def test_a_locked_store_is_read_and_nothing_else(tmp_path):
    run = make_run(RunStore(tmp_path))
    options = find_preset("baseline").options
    locked = RunStore(tmp_path, locked="Only to look.")
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    assert [record.id for record in locked.runs()] == [run.id]
    for attempt in (
        lambda: launch(locked, options),
        lambda: locked.create(options, ""),
        lambda: locked.rename(run.id, "new"),
        lambda: locked.tag(run.id, ("new",)),
        lambda: locked.remove(run.id),
        lambda: opened_logs.new_arrival(locked),
        lambda: own_job_runs.begin(locked, "job", tags=()),
        lambda: save_preset(locked, "mine", options),
        lambda: remove_preset(locked, "mine"),
    ):
        with pytest.raises(StoreError, match=r"^Only to look\.$"):
            attempt()
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before


def test_no_upload_begins_where_one_may_only_look(run_store, monkeypatch):
    monkeypatch.setenv(access.CHANGES_VARIABLE, "0")
    status, answer = finish(ask("POST", uploads.URL))
    assert status == 403
    assert "view only" in answer["error"]
    assert not run_store.root.exists()


def test_what_nobody_kept_goes_only_where_one_may_delete(run_store, monkeypatch):
    half = opened_logs.new_arrival(run_store)
    os.utime(half, (0, 0))
    for allowed, is_left in (("0", True), ("1", False)):
        monkeypatch.setenv(access.CHANGES_VARIABLE, allowed)
        server._prepare()
        assert half.exists() is is_left


def test_the_app_says_so_and_launches_nothing(open_page, run_store, monkeypatch):
    monkeypatch.setenv(access.CHANGES_VARIABLE, "0")
    app = open_page("new_run", **{"from": "preset:baseline"})
    assert "view only" in texts(app)
    app.button(key="launch").click().run()
    assert not app.exception
    assert "view only" in app.error[0].value
    assert run_store.runs() == []


def test_files_of_the_machine_are_read_by_jobs_only_where_paths_are_allowed(open_page, monkeypatch, tmp_path):
    monkeypatch.setenv("PIPELINE_LAB_PATHS", str(tmp_path / "allowed"))
    monkeypatch.setenv(access.CHANGES_VARIABLE, "1")
    for folder, may in (("allowed", True), ("other", False)):
        pattern = str(tmp_path / folder / "*.tfrecord")
        options = set_options(
            find_preset("baseline").options, [("workload.pattern", pattern), ("workload.data", "files")]
        )
        app = open_page("new_run", options=pack(options.model_dump(mode="json")))
        assert ("is outside the folders" in texts(app)) is not may
        assert app.button(key="launch").disabled is not may


OPTIONS = own_options("json:loads", "/nowhere").model_copy(update={"name": "mine"})


def _make_run(store: RunStore) -> RunFolder:
    folder = store.create(OPTIONS, render_source(OPTIONS))
    set_state(folder, RunState.DONE)
    return folder


def test_a_run_of_own_code_is_not_launched_again_without_leave(open_page, run_store):
    run = _make_run(run_store)
    app = open_page("new_run", **{"from": f"run:{run.id}"})
    assert not app.exception
    assert app.button(key="launch").disabled
    assert "is custom code, which the app runs only if" in texts(app)
    app = open_page("race", arms=f"run:{run.id},preset:baseline")
    assert "is custom code, which the app runs only if" in texts(app)
    assert [one.id for one in run_store.runs()] == [run.id]


def test_with_leave_it_is_offered_and_launched(open_page, run_store, monkeypatch):
    monkeypatch.setenv(access.CODE_VARIABLE, "1")
    run = _make_run(run_store)
    app = open_page("new_run", **{"from": f"run:{run.id}"})
    key = f"draft{app.session_state['draft'].generation}.workload.module"
    app.text_input(key=f"{key}.arguments").set_value("batch=64, name=a").run()
    app.button(key="launch").click().run()
    launched = run_store.read(next(record.id for record in run_store.runs() if record.id != run.id))
    assert launched.options is not None
    assert launched.options["workload"]["arguments"] == {"batch": 64, "name": "a"}


@pytest.mark.parametrize("value", ["", "0"])
def test_without_the_variable_it_is_not_offered(value, monkeypatch):
    monkeypatch.setenv(access.CODE_VARIABLE, value)
    assert not access.may_run_code()


def test_arguments_are_written_as_they_are_read():
    arguments = {"batch": 64, "name": 'a, "b"', "shuffle": False, "seed": None}
    assert write_arguments(arguments) == 'batch=64, name="a, \\"b\\"", shuffle=false, seed=null'
    assert parse_arguments(write_arguments(arguments)) == arguments


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
    with pytest.raises(OptionsError, match="home/photos is outside the folders"):
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
