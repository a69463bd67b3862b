"""Where others reach the app, it only shows runs, unless it was started to let them do more."""

import os

import pytest
import streamlit as st

from pipeline_lab.errors import StoreError
from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.run_options import set_options
from pipeline_lab.runs import opened_logs, recordings
from pipeline_lab.runs.launch.launcher import launch
from pipeline_lab.runs.saved_presets import remove_preset, save_preset
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui.new_run.origin import pack
from pipeline_lab.ui.serving import access, server, uploads
from tests.support.asgi import finish
from tests.support.run_folders import make_run
from tests.ui.conftest import texts
from tests.ui.test_uploads import ask


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
        lambda: recordings.begin(locked, "job", tags=()),
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
    assert "only shows runs" in answer["error"]
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
    assert "only shows runs" in texts(app)
    app.button(key="launch").click().run()
    assert not app.exception
    assert "only shows runs" in app.error[0].value
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
        assert ("lies outside the folders" in texts(app)) is not may
        assert app.button(key="launch").disabled is not may
