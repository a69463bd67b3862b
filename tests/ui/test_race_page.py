"""A race is started from the app, from wherever one thinks of it."""

import pytest

from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.race_options import read_race_options
from pipeline_lab.options.run_options import read_options
from pipeline_lab.runs.record import RunState
from pipeline_lab.ui.shared import links
from tests.support.presets import SYNTHETIC
from tests.support.run_folders import make_run
from tests.support.saved_runs import make_saved_run, make_watched_race
from tests.ui.conftest import texts


def test_presets_runs_and_the_form_race_within_a_budget(open_page, run_store):
    run = make_run(run_store, "baseline")
    app = open_page("race", arms=f"run:{run.id},preset:optimised,form")
    assert not app.exception
    assert app.multiselect[0].value == [f"run:{run.id}", "preset:optimised", "form"]
    app.number_input(key="race.pairs").set_value(12)
    app.number_input(key="race.max_seconds").set_value(90.0)
    app.button(key="race-start").click().run()
    race = next(record for record in run_store.runs() if record.id != run.id)
    options = read_race_options(run_store.read(race.id).options or {})
    assert (options.pairs, options.max_seconds, race.status.state) == (12, 90.0, RunState.QUEUED)
    assert options.arm_names == ("baseline (A)", "optimised", "baseline (C)")
    assert app.title[0].value.startswith("baseline"), "the race's own page"
    assert app.button(key="cancel")


def test_what_the_form_shows_is_what_races(open_page, run_store):
    app = open_page("new_run")
    app.text_input(key="draft0.name").set_value("mine").run()
    app.button(key="race-form").click().run()
    assert not app.exception
    assert app.multiselect[0].value == ["form"]
    assert "at least two arms" in app.info[0].value
    app.query_params["arms"] = "preset:baseline,form"
    app.switch_page(links.RACE.path).run()
    app.button(key="race-start").click().run()
    assert read_race_options(run_store.read(run_store.runs()[0].id).options or {}).arm_names == ("baseline", "mine")


def test_a_link_says_what_it_names_in_vain(open_page):
    app = open_page("race", arms="preset:baseline,run:*gone*")
    assert not app.exception
    assert app.multiselect[0].value == ["preset:baseline"]
    assert app.warning[0].value == r"The link names items that do not exist\: run\:\*gone\*\."


def test_arms_that_cannot_race_say_why(open_page, run_store):
    app = open_page("race", arms="preset:baseline,nothing")
    assert app.button(key="race-start").disabled
    document = find_preset("baseline").options.model_dump(mode="json")
    stages = [stage for stage in document["pipeline"]["stages"] if stage["stage"] != "repeat"]
    document["pipeline"]["stages"] = stages
    run = run_store.create(read_options(document), "")
    app = open_page("race", arms=f"preset:baseline,run:{run.id}")
    assert "The data of" in app.error[0].value
    assert app.button(key="race-start").disabled


def test_a_race_is_no_arm(open_page, run_store):
    race, run = make_watched_race(run_store, 8), make_run(run_store)
    app = open_page("race", arms=f"run:{race.id},run:{run.id}")
    assert app.multiselect[0].value == [f"run:{run.id}"]


@pytest.mark.usefixtures("diagnosis")
def test_a_run_is_raced_from_its_page(open_page, run_store):
    run = make_saved_run(run_store)
    app = open_page("run", run=run.id)
    app.button(key=f"manage-{run.id}-race").click().run()
    assert app.multiselect[0].value == [f"run:{run.id}"]


def test_runs_that_were_recorded_apart_are_raced_from_their_comparison(open_page, run_store):
    ids = [make_saved_run(run_store, preset).id for preset in ("baseline", "optimised")]
    app = open_page("compare", runs=",".join(ids))
    app.button(key="compare-race").click().run()
    assert app.multiselect[0].value == [f"run:{one}" for one in ids]
    assert "recorded separately" not in texts(app)
    assert SYNTHETIC.name in str(app.multiselect[0].options).lower()
