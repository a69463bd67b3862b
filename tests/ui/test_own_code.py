"""Code of the user's: launched from the app only where it was started with leave to."""

import pytest

from pipeline_lab.options.run_options import own_options
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.store import RunFolder, RunStore
from pipeline_lab.ui.serving import access
from pipeline_lab.ui.shared.fields import write_arguments
from pipeline_lab.workloads.module import parse_arguments
from tests.support.run_folders import set_state
from tests.ui.conftest import texts

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
    assert "is code of your own, which the app only runs when" in texts(app)
    app = open_page("race", arms=f"run:{run.id},preset:baseline")
    assert "is code of your own, which the app only runs when" in texts(app)
    assert [one.id for one in run_store.runs()] == [run.id]


def test_with_leave_it_is_offered_and_launched(open_page, run_store, monkeypatch):
    monkeypatch.setenv(access.CODE_VARIABLE, "1")
    run = _make_run(run_store)
    app = open_page("new_run", **{"from": f"run:{run.id}"})
    key = f"draft{app.session_state['draft'].generation}.workload.module"
    app.text_input(key=f"{key}.arguments").set_value("batch=64, name=a").run()
    app.button(key="launch").click().run()
    launched = next(record for record in run_store.runs() if record.id != run.id)
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
