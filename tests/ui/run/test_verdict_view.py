from dataclasses import replace

import pytest

from pipeline_lab.analysis.causes import VerdictClass
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.verdict.verdict import Suggestion
from pipeline_lab.errors import Unavailable
from pipeline_lab.trace.schema import Salvage
from pipeline_lab.ui.run import what_if_tab
from pipeline_lab.ui.run.verdict_view import basis
from pipeline_lab.ui.shared import analyses
from pipeline_lab.ui.shared.text import escape
from tests.support import results
from tests.support.run_folders import make_run
from tests.ui.conftest import said, texts


@pytest.fixture
def open_diagnosis(open_page, run_store, monkeypatch):
    """Return a function that opens the page of a run with some diagnosis."""

    def open_(found: Diagnosis):
        monkeypatch.setattr(analyses, "wait_for", lambda _folder, **_: found)
        app = open_page("run", run=make_run(run_store).id)
        assert not app.exception
        return app

    return open_


def suggesting(*suggestions: Suggestion) -> Diagnosis:
    found = results.diagnosis()
    return replace(found, verdict=replace(found.verdict, suggestions=suggestions))


@pytest.mark.parametrize(
    ("missing", "chart"),
    [
        (("step_breakdown",), "device-timeline"),
        (("step_breakdown", "steps"), "stall-over-time"),
        (("step_breakdown", "steps", "job_steps"), "device-timeline"),
    ],
    ids=["not divided", "steps in no window", "no steps"],
)
def test_without_its_parts_a_step_is_shown_by_what_is_known_of_the_training(open_diagnosis, missing, chart):
    """Windows without a step of a job that timed them show what it did besides."""
    app = open_diagnosis(results.diagnosis(**dict.fromkeys(missing, Unavailable("not recorded"))))
    first, *_ = (one.proto for one in app.get("bidi_component"))
    assert f"verdict-{chart}" in first.id


def test_the_first_numbers_are_those_of_the_verdict(open_diagnosis):
    found = results.diagnosis()
    shown = {one.label: one.value for one in open_diagnosis(found).metric if one.proto.show_border}
    assert list(shown) == ["Time per step", "Lost to input", "Compute busy", "Throughput", "Peak memory"]
    assert [shown[name] for name in ("Time per step", "Lost to input", "Compute busy")] == ["50 ms", "60 %", "30 %"]
    assert basis(found) == "Throughput: all 195 measured steps.", "the picture says what the others are over"
    assert found.verdict.step
    unlike = replace(found.verdict.step, are_recorded=False, count=195)
    told = basis(replace(found, verdict=replace(found.verdict, step=unlike)))
    assert told.startswith("Time per step, lost to input, compute busy and throughput: all 195 measured steps")


def test_a_log_lists_no_number_that_only_runs_have(open_diagnosis):
    app = open_diagnosis(results.bare_diagnosis())
    shown = {one.label: one.value for one in app.metric if one.proto.show_border}
    assert shown == {"Time per step": "–", "Lost to input": "–", "Compute busy": "–"}


def test_what_to_try_first_is_a_button_that_leads_to_the_change(open_diagnosis):
    change = Suggestion("Add prefetch; or more.", "Nothing overlaps.", 25.0, options={"name": "a"})
    app = open_diagnosis(suggesting(change))
    label = said(app.button(key="try-suggestions").label)
    assert label == "Try first: Add prefetch (predicted: step 25 % shorter)"
    assert "Nothing overlaps" in texts(app), "the reason is folded, and there"
    app.button(key="try-suggestions").click().run()
    assert app.session_state["section"] == what_if_tab.TITLE


def test_what_no_tab_shows_is_said(open_diagnosis):
    app = open_diagnosis(
        suggesting(Suggestion("Buy a disk.", "It is slow. Very.", command="pipeline-lab watch train.py"))
    )
    first = next(iter(app.get("popover")))
    assert said(first.proto.popover.label) == "Try first: Buy a disk", "a button, too"
    assert "It is slow\\." in [one.value for one in app.caption], "what it is against"
    assert [one.value for one in first.code] == ["pipeline-lab watch train.py"], "what to do next"
    assert "Measure it in your own script:" in [one.value for one in first.markdown]
    assert "try-suggestions" not in [one.key for one in app.button]


@pytest.mark.parametrize(
    ("command", "does"),
    [
        ("pipeline-lab fix train.py", "Find the lines to change in your script, prove and race the change:"),
        ("pipeline-lab what-if a --race", "Predict it again, and race it against this run:"),
    ],
)
def test_the_words_before_a_command_say_what_it_does(open_diagnosis, command, does):
    app = open_diagnosis(suggesting(Suggestion("Buy a disk.", "It is slow.", command=command)))
    assert does in [one.value for one in next(iter(app.get("popover"))).markdown]


def test_a_job_with_nothing_to_fix_says_so_and_has_no_button(open_diagnosis):
    advice = VerdictClass.DEVICE_BOUND.recommendation
    found = suggesting(Suggestion(advice.change, advice.why))
    healthy = replace(found.verdict, verdict_class=VerdictClass.DEVICE_BOUND)
    app = open_diagnosis(replace(found, verdict=healthy))
    first, *_ = texts(app).split("What to try")
    assert "**There is nothing to fix in the input" in first
    assert "Try first" not in texts(app)
    gains = replace(healthy, suggestions=(Suggestion("Cache it.", "It repeats.", 5.0),))
    assert next(iter(open_diagnosis(replace(found, verdict=gains)).get("popover"))).proto.popover.label


def test_a_line_that_would_record_what_is_missing_can_be_copied(open_diagnosis):
    app = open_diagnosis(suggesting(Suggestion("Mark each step.", "Nobody did.", after="with mark(i): step()")))
    assert "with mark(i): step()" in [one.value for one in app.code]


def test_a_reason_that_the_sentence_gives_is_not_given_again(open_diagnosis):
    found = suggesting(Suggestion("Add prefetch.", "Input and compute do not overlap: 2 ms."))
    said_already = replace(found.verdict, sentence="It waits, because input and compute do not overlap.")
    app = open_diagnosis(replace(found, verdict=said_already))
    assert not any("overlap" in one.value for one in app.caption)


def test_an_emulated_accelerator_is_named_once(open_diagnosis):
    found = results.diagnosis()
    verdict = replace(found.verdict, sentence="It waits. The accelerator is emulated.")
    app = open_diagnosis(replace(found, verdict=verdict, source=replace(found.source, is_emulated=True)))
    assert app.header[0].value == "It waits\\."
    first, *_ = texts(app).split("What to try")
    assert "emulated accelerator]" in first


def test_damage_stands_under_the_sentence(open_diagnosis):
    found = results.diagnosis()
    assert not open_diagnosis(found).warning
    source = replace(found.source, damaged_tables=("steps.arrows of this run is damaged: row 3 is `odd`.",))
    (warning,) = open_diagnosis(replace(found, source=source)).warning
    assert warning.value == escape(f"{source.damaged_tables[0]} Numbers that rest on it are not given.")


def test_damage_that_the_sentence_explains_is_not_told_twice(open_diagnosis):
    found = results.diagnosis()
    salvage = Salvage(300, 7, "The file is cut off.")
    damaged = replace(found, source=replace(found.source, salvaged=salvage))
    assert "The file is cut off" in open_diagnosis(damaged).warning[0].value.replace("\\", "")
    verdict = replace(found.verdict, sentence=f"What could be read holds no step. {salvage.reason}")
    assert not open_diagnosis(replace(damaged, verdict=verdict)).warning
