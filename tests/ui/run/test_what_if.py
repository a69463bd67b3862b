"""The tab What if: choices answer at once, a prediction races, and what came of earlier ones is shown."""

from dataclasses import replace

import pytest

from pipeline_lab.advice.advising import advise
from pipeline_lab.advice.forecasts import plan_race
from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis, diagnose_saved
from pipeline_lab.options.race_options import read_race_options
from pipeline_lab.runs.record import RunKind
from pipeline_lab.ui.new_run import advice
from pipeline_lab.ui.shared import analyses
from tests.support.measured import mapped, measured, options
from tests.support.measured_run import make_measured_run, make_watched_run
from tests.support.races import PlantedArm, make_race
from tests.ui.conftest import run_function, said, texts


def written(app) -> str:
    """Return what people read, Markdown's escapes taken out."""
    return said(texts(app))


@pytest.fixture
def tab(open_page, run_store, monkeypatch):
    """Open the tab of a run whose serial map takes 20 ms of a step."""
    monkeypatch.setattr(analyses, "wait_for", lambda folder, **_: advise(diagnose_saved(folder.path)))
    run = make_measured_run(run_store)
    return open_page("run", run=run.id, section="What if"), run


def test_the_run_itself_comes_first_and_a_choice_answers_at_once(tab):
    app, run = tab
    assert not app.exception
    assert "Limited by map, 20 ms. Next: training step, 5 ms." in written(app)
    app.select_slider(key=f"what-if.{run.id}.2.map").set_value(2).run()
    assert not app.exception
    assert "Limited by map, 10 ms." in written(app)
    app.selectbox(key=f"what-if.{run.id}.cache").set_value("memory, after map").run()
    assert "Limited by training step, 5 ms." in written(app)
    app.text_input(key=f"what-if.{run.id}.typed").set_value("workload.element_bytes=9").run()
    assert "workload.element_bytes" in written(app)
    app.text_input(key=f"what-if.{run.id}.typed").set_value("nonsense").run()
    assert "PATH=VALUE" in written(app)


def test_a_prediction_races_and_is_kept_with_the_race(tab, run_store):
    app, run = tab
    app.select_slider(key=f"what-if.{run.id}.2.map").set_value(4).run()
    app.button(key=f"what-if.{run.id}.own.race").click().run()
    (race,) = [record for record in run_store.runs() if record.kind is RunKind.RACE]
    assert read_race_options(run_store.read(race.id).options or {}).predicted_ratios == (0.25,)


def test_suggestions_have_their_change_and_race_too(tab, run_store):
    app, _ = tab
    assert "Give map 4 parallel calls." in written(app)
    assert "Give map 4 parallel calls.** :green-badge[predicted: step 75 % shorter] :gray-badge[low risk]" in written(
        app
    )
    assert any("num_parallel_calls=4" in code.value for code in app.code)
    app.button(key="what-if.suggestion.0.race").click().run()
    assert any(record.kind is RunKind.RACE for record in run_store.runs())


def test_earlier_predictions_are_held_against_their_races(tab, run_store):
    app, _ = tab
    assert "No race in this store has tested a prediction yet." in written(app)
    race = plan_race(measured(), [options(mapped(2))], pairs=30)
    make_race(run_store, PlantedArm([10.0] * 30), PlantedArm([5.0] * 30), options=race)
    app.run()
    assert "Predictions of this store that were raced: 1." in written(app)


def test_a_run_that_measured_too_little_says_so(open_page, run_store, monkeypatch):
    monkeypatch.setattr(analyses, "wait_for", lambda folder, **_: advise(diagnose_saved(folder.path)))
    run = make_measured_run(run_store)
    run.model.unlink()
    app = open_page("run", run=run.id, section="What if")
    assert "Nothing can be predicted from this run." in written(app)


def test_where_the_first_epoch_was_another_matter_predictions_say_that_they_are_about_the_later_ones(
    open_page, run_store, monkeypatch
):
    monkeypatch.setattr(analyses, "wait_for", lambda folder, **_: advise(diagnose_saved(folder.path)))
    run = make_measured_run(run_store, cold_steps=30)
    assert "The run is used from step 30 on, after its first epoch" in written(
        open_page("run", run=run.id, section="What if")
    )
    app = open_page("new_run", **{"from": f"run:{run.id}"})
    assert "**20 ms** a step, the same time per example as in synthetic after its first epoch" in written(app)


def test_the_form_is_predicted_from_the_latest_run_that_can_tell(open_page, run_store):
    run = make_measured_run(run_store)
    diagnose_saved(run.path)
    app = open_page("new_run", **{"from": f"run:{run.id}"})
    assert not app.exception
    assert "**20 ms** a step, the same time per example as in synthetic" in written(app)
    assert not [button for button in app.button if button.key == "forecast-race"], "it would race itself"
    app.button(key="fix.serial-stage.2.apply").click().run()
    assert "**5 ms** a step, 75 % less time per example than in synthetic" in written(app)
    app.button(key="forecast-race").click().run()
    assert any(record.kind is RunKind.RACE for record in run_store.runs())


def test_the_run_that_predicts_is_named_and_another_can_be_chosen(open_page, run_store):
    runs = [make_measured_run(run_store) for _ in range(2)]
    for run in runs:
        diagnose_saved(run.path)
    app = open_page("new_run", **{"from": f"run:{runs[0].id}"})
    assert "From run synthetic" in written(app)
    (source,) = [each for each in app.selectbox if each.label == "Predict from"]
    newest, oldest = (record.id for record in run_store.runs())
    assert source.value == newest
    source.set_value(oldest).run()
    assert not app.exception
    assert [each.value for each in app.selectbox if each.label == "Predict from"] == [oldest]


def test_a_run_on_a_busy_machine_does_not_predict_unasked(open_page, run_store, monkeypatch):
    run = make_measured_run(run_store)
    diagnose_saved(run.path)
    saved = SavedDiagnosis.load_latest
    monkeypatch.setattr(SavedDiagnosis, "load_latest", lambda self: replace(saved(self), other_cpu_percent=120.0))
    advice._measured.cache_clear()
    app = open_page("new_run", **{"from": f"run:{run.id}"})
    assert "Other programs kept the machine busy" in written(app)
    assert "**20 ms** a step" not in written(app)
    (source,) = [each for each in app.selectbox if each.label == "Predict from"]
    source.set_value(run.id).run()
    assert "**20 ms** a step" in written(app)
    assert "other programs used 1.2 cores meanwhile" in written(app)
    advice._measured.cache_clear()


def test_a_run_that_is_diagnosed_later_can_tell_from_then_on(open_page, run_store):
    run = make_measured_run(run_store)
    app = open_page("new_run", **{"from": f"run:{run.id}"})
    assert "a step, as much time" not in written(app)
    diagnose_saved(run.path)
    assert "**20 ms** a step, the same time per example as in synthetic" in written(app.run())


def test_advice_on_the_order_is_done_raced_and_predicted(open_page, run_store):
    run = make_measured_run(run_store)
    diagnose_saved(run.path)
    app = open_page("new_run", **{"from": f"run:{run.id}"})
    assert "Predicted: step 75 % shorter, from 20 ms to 5 ms." in written(app), (
        "the serial map, by AUTOTUNE on eight threads"
    )
    app.button(key="fix.serial-stage.2.race").click().run()
    (race,) = [record for record in run_store.runs() if record.kind is RunKind.RACE]
    assert read_race_options(run_store.read(race.id).options or {}).predicted_ratios == (0.25,)
    app = open_page("new_run", **{"from": f"run:{run.id}"})
    app.button(key="fix.serial-stage.2.apply").click().run()
    assert not app.exception
    assert "num_parallel_calls=tf.data.AUTOTUNE" in written(app)
    assert "as much time for each example" not in written(app)


def test_advice_is_raced_where_nothing_can_be_predicted_too(open_page, run_store):
    app = open_page("new_run")
    app.button(key="fix.no-prefetch.5.race").click().run()
    (race,) = run_store.runs()
    assert read_race_options(run_store.read(race.id).options or {}).predicted_ratios == ()


def test_the_form_says_why_nothing_is_predicted(open_page, run_store):
    assert "Not predicted. There is no finished run of the images workload" in written(open_page("new_run"))
    run = make_measured_run(run_store)
    app = open_page("new_run", **{"from": f"run:{run.id}"})
    assert "Not predicted. Run synthetic is not analyzed yet" in written(app)
    diagnose_saved(run.path)
    next(each for each in app.selectbox if each.label == "Loop").set_value("in_graph").run()
    assert "Not predicted. Run synthetic cannot tell" in written(app)


def _form(name: str) -> None:
    """Show the choices over a preset, and write what stands for them."""
    import streamlit as st

    from pipeline_lab.options.presets import find_preset
    from pipeline_lab.ui.run.what_if_tab import choose_changes

    options = find_preset(name).options
    st.text("unchanged" if choose_changes(options, "form") == options else "changed")


def _forms() -> None:
    """Show the choices over every preset, and write which presets they change."""
    import streamlit as st

    from pipeline_lab.options.presets import PRESETS
    from pipeline_lab.ui.run.what_if_tab import choose_changes

    for preset in PRESETS:
        if choose_changes(preset.options, f"form-{preset.name}") != preset.options:
            st.text(preset.name)
    st.text("all")


def test_the_choices_begin_with_what_the_options_say():
    app = run_function(_forms)
    assert not app.exception
    assert [each.value for each in app.text] == ["all"]


def test_files_can_be_read_as_autotune_likes_or_one_by_one():
    app = run_function(_form, "optimised")
    (files,) = [each for each in app.select_slider if each.label == "Files read at a time"]
    assert files.value == "autotune"
    for value in (2, "one by one"):
        files.set_value(value).run()
        assert not app.exception
        assert app.text[0].value == "changed"


def test_a_watched_script_lists_its_changes_with_their_lines(open_page, run_store, monkeypatch):
    monkeypatch.setattr(analyses, "wait_for", lambda folder, **_: advise(diagnose_saved(folder.path)))
    app = open_page("run", run=make_watched_run(run_store).id, section="What if")
    assert not app.exception
    shown = written(app)
    assert "The step takes 20 ms, with free input 5 ms" in shown
    assert ".map(load, num_parallel_calls=tf.data.AUTOTUNE)" in shown
    assert "train.py:41" in shown
