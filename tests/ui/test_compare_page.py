"""Recorded runs side by side in the app."""

import pytest

from pipeline_lab.report.formats import FORMATS
from pipeline_lab.runs.record import RunRecord, RunState, RunStatus
from pipeline_lab.ui.compare_page import with_baseline
from pipeline_lab.ui.shared.choices import can_be_compared, labels_of
from tests.support.run_folders import set_state
from tests.support.saved_runs import make_saved_run, make_watched_race
from tests.ui.conftest import charts, texts


def test_the_steps_of_both_stand_first_and_drift_is_said(open_page, run_store):
    first, second = make_saved_run(run_store), make_saved_run(run_store, "optimised", 0.5)
    app = open_page("compare", runs=f"{first.id},{second.id}")
    assert not app.exception
    written = texts(app)
    assert "pipeline\\.read\\.mode" not in written, "options come after what was measured"
    assert "recorded separately" in written
    assert "Median step and throughput: all" in written.replace("\\", ""), "what the numbers are over"
    assert not app.warning, "one folded notice instead of several"
    assert charts(app)[0]["layout"]["barmode"] == "stack", "what a step of each consists of"
    assert "What a step consists of" in written
    assert app.header[0].value == "optimised against baseline"
    assert "about 2× shorter" in app.header[1].value.replace("\\", "")
    assert len(charts(app)) == 5, "the steps, then step time, loss and accuracy"
    assert [one.proto.label for one in app.get("link_button")] == [each.title for each in FORMATS]


def test_the_form_writes_the_link(open_page, run_store):
    ids = [make_saved_run(run_store, preset).id for preset in ("baseline", "optimised")]
    app = open_page("compare")
    assert "Choose 2 to 20 runs" in app.info[0].value
    app.multiselect[0].set_value(ids)
    app.selectbox[0].set_value(ids[1])
    app.button(key="compare").click().run()
    assert not app.exception
    assert app.header[0].value == "baseline against optimised"


def test_only_runs_of_one_name_and_minute_are_told_apart_by_their_id():
    def record(run_id: str, name: str) -> RunRecord:
        return RunRecord(id=run_id, name=name, status=RunStatus(RunState.DONE, created_s=0.0))

    records = {each.id: each for each in (record("x-aaaa", "one"), record("x-bbbb", "one"), record("x-cccc", "two"))}
    labels = labels_of(records)
    assert [label.rpartition(" · ")[2] for label in labels.values()][:2] == ["aaaa", "bbbb"]
    assert "cccc" not in labels["x-cccc"]


def test_twenty_runs_fit(open_page, run_store):
    ids = [make_saved_run(run_store, "baseline", 1 + 0.1 * number).id for number in range(20)]
    app = open_page("compare", runs=",".join(ids))
    assert not app.exception
    assert "19 runs against baseline" in app.header[0].value


@pytest.mark.parametrize("runs", ["nothing,neither", "../a,../b"])
def test_a_link_to_no_run_is_one_sentence(open_page, runs):
    app = open_page("compare", runs=runs)
    assert not app.exception
    assert len(app.error) == 1


def test_a_run_that_is_not_analyzed_is_waited_for(open_page, run_store, monkeypatch):
    from pipeline_lab.ui.shared import analyses

    waited = []
    monkeypatch.setattr(analyses, "wait_for", lambda folder, **_: waited.append(folder.id))
    first, second = make_saved_run(run_store), make_saved_run(run_store)
    second.steps.write_bytes(second.steps.read_bytes() + b" ")
    app = open_page("compare", runs=f"{first.id},{second.id}")
    assert not app.exception
    assert waited == [second.id]


def test_races_and_working_runs_do_not_fit(run_store):
    run, race = make_saved_run(run_store), make_watched_race(run_store, 8)
    assert can_be_compared(run_store.read(run.id))
    assert not can_be_compared(run_store.read(race.id))
    set_state(run, RunState.RUNNING)
    assert not can_be_compared(run_store.read(run.id))


def test_the_baseline_comes_first():
    assert with_baseline(["a", "b"], None) == ["a", "b"]
    assert with_baseline(["a", "b"], "b") == ["b", "a"]
    assert with_baseline(["a", "b"], "c") == ["c", "a", "b"]


@pytest.mark.usefixtures("diagnosis")
def test_notes_are_written_on_the_run_page_and_shown_as_typed(open_page, run_store):
    folder = make_saved_run(run_store)
    app = open_page("run", run=folder.id)
    app.text_area(key=f"notes-{folder.id}").set_value("first <b>line</b>\nsecond $x$")
    app.button(key="notes-save").click().run()
    assert not app.exception
    assert run_store.read(folder.id).notes == "first <b>line</b>\nsecond $x$"
    assert "first \\<b\\>line\\</b\\>  \nsecond \\$x\\$" in texts(app)
    assert [one.proto.label for one in app.get("link_button")] == [each.title for each in FORMATS]
