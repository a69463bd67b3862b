"""A search in the app: on every list, while it goes on, when it is over, and before it begins."""

import os
from urllib.parse import unquote

import pytest

from pipeline_lab.runs.launch import runtime
from pipeline_lab.runs.record import RunKind, RunState
from pipeline_lab.tuning import search_launch
from pipeline_lab.tuning.search_result import read_tuning
from pipeline_lab.ui.new_run.origin import read_origin
from tests.support.run_folders import make_run, set_state
from tests.support.worlds import make_search
from tests.ui.conftest import charts, said, texts


@pytest.fixture
def started(monkeypatch):
    """Let searches be launched without a process; return the commands that would have been started."""
    commands = []
    monkeypatch.setattr(runtime, "start_detached", lambda command, _log: commands.append(command) or os.getpid())
    monkeypatch.setattr(search_launch, "CLAIM_S", 0.0)
    return commands


@pytest.mark.parametrize("page", ["home", "runs"])
def test_lists_survive_a_search(open_page, run_store, page):
    make_search(run_store)
    app = open_page(page)
    assert not app.exception
    assert "tune naive" in (
        texts(app) if page == "home" else unquote("#".join(app.dataframe[0].value["Name"])).split("#")
    )


def test_a_search_shows_its_winner_the_races_and_the_source(open_page, run_store):
    folder = make_search(run_store)
    app = open_page("run", run=folder.id)
    assert not app.exception
    assert not app.error
    answer = "“map calls 4, pool threads 4, prefetch 2” takes 76.3 % less time per step than the start"
    assert said(app.header[0].value).startswith(answer)
    assert "**What was tried\\: time per step against start**" in texts(app)
    assert len(charts(app)) == 4, "places, history, importance, frontier"
    app.button(key="tune-winner").click().run()
    assert not app.exception
    assert read_origin(f"run:{folder.id}", run_store) == read_tuning(folder).winner


def test_a_working_search_shows_what_was_tried_and_can_be_stopped(open_page, run_store):
    folder = make_search(run_store, stops_after=2)
    set_state(folder, RunState.RUNNING)
    app = open_page("run", run=folder.id)
    assert not app.exception
    assert "20 s of 10 min 00 s spent on 2 runs and races." in texts(app)
    assert "Of 36 configurations" in texts(app)
    assert len(charts(app)) == 2, "how it went, and the places so far"
    app.button(key="cancel").click().run()
    assert folder.cancel_flag.exists()


def test_a_stopped_search_can_go_on(open_page, run_store, started):
    folder = make_search(run_store, RunState.CANCELLED, stops_after=2)
    app = open_page("run", run=folder.id)
    assert not app.exception
    assert "not raced against the start" in texts(app)
    app.button(key="tune-resume").click().run()
    assert started[0][-2:] == ["pipeline_lab.tuning", str(folder.path)]


def test_a_choice_of_the_model_that_was_not_raced_is_shown_with_the_race_to_paste(open_page, run_store):
    folder = make_search(run_store, RunState.CANCELLED, stops_after=1)
    app = open_page("run", run=folder.id)
    assert not app.exception
    assert "is only the model's choice: it did not race" in app.header[0].value.replace("\\", "")
    assert read_tuning(folder).race_command in texts(app)
    assert texts(app).count("Nothing was raced; with a larger budget") == 1, "in the tab, not above it"
    assert app.button(key="tune-winner").label == "Open the model's choice in the form"


def test_a_search_starts_from_a_preset_within_limits(open_page, run_store, started):
    app = open_page("tune", start="preset:synthetic")
    assert not app.exception
    app.number_input(key="tune.budget_s").set_value(120.0).run()
    app.button(key="tune-start").click().run()
    (record,) = run_store.runs()
    assert record.kind is RunKind.TUNE
    options = run_store.read(record.id).options
    assert options["budget_s"] == 120.0
    assert options["start"]["name"] == "synthetic"
    assert started


def test_a_run_offers_to_be_searched_from(open_page, run_store, diagnosis):  # noqa: ARG001
    folder = make_run(run_store)
    app = open_page("run", run=folder.id)
    app.button(key=f"manage-{folder.id}-tune").click().run()
    assert not app.exception
    assert app.selectbox(key=f"tune-start-run:{folder.id}").value == f"run:{folder.id}"


def test_a_start_that_is_gone_has_to_be_chosen_anew(open_page, run_store, started):  # noqa: ARG001
    app = open_page("tune", start="preset:gone")
    assert "Choose where the search starts." in texts(app)
    assert app.button(key="tune-start").disabled
    assert not started
