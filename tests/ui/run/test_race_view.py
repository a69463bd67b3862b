"""A race in the app: on every list, while it goes on, when it is over."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pipeline_lab.analysis.diagnosis.saved import diagnose_saved
from pipeline_lab.errors import OptionsError, Unavailable
from pipeline_lab.figures.comparing.race_charts import closing_intervals
from pipeline_lab.figures.theme import caption_of
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.runs.race_standings import Rounds, read_rounds
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_events import RaceEvent, read_events
from pipeline_lab.runs.run_tables import BLOCKS, read_table
from pipeline_lab.ui.new_run.origin import read_origin
from pipeline_lab.ui.run.live import summarize
from pipeline_lab.ui.run.race_view import standing_table
from pipeline_lab.ui.shared import analyses
from tests.support.presets import BASELINE, OPTIMISED
from tests.support.races import WORDS
from tests.support.run_folders import set_state
from tests.support.saved_runs import make_watched_race
from tests.ui.conftest import charts, said, texts

TRACE = Path(__file__).parents[2] / "data" / "python_between_steps.xplane.pb"
THREE = RaceOptions(name="three", arms=(BASELINE.options, OPTIMISED.options, BASELINE.options))


@pytest.mark.parametrize("page", ["home", "runs"])
def test_lists_survive_a_race(open_page, run_store, page):
    make_watched_race(run_store, 8)
    app = open_page(page)
    assert not app.exception
    assert "words" in (texts(app) if page == "home" else "#".join(app.dataframe[0].value["Name"]).split("#"))


def test_the_app_reads_no_window_of_an_arm_itself(open_page, run_store, monkeypatch):
    folder = make_watched_race(run_store)
    window = folder.arm(0).window("window-0001")
    window.mkdir(parents=True)
    shutil.copy(TRACE, window / "host.xplane.pb")
    asked = []

    class Attempts:
        def find(self, _folder):
            return None

        def start(self, asked_for):
            asked.append(asked_for.path)
            return SimpleNamespace(has_failed=False)

    monkeypatch.setattr(analyses, "_attempts", Attempts())
    app = open_page("run", run=folder.id)
    assert not app.exception
    assert set(asked) == {window}
    assert not charts(app), "until another process has read the window"
    diagnose_saved(window)
    assert "input wait" in texts(app.run()) or "Python" in texts(app)


def test_a_race_says_its_answer_its_numbers_and_its_charts(open_page, run_store):
    folder = make_watched_race(run_store)
    app = open_page("run", run=folder.id)
    assert not app.exception
    assert not app.error
    assert app.header[0].value.startswith("optimised is faster than baseline\\: its step takes 19")
    assert "**Candidates**" in texts(app)
    assert "**Arms**" in texts(app)
    assert len(charts(app)) == 3, "the interval, the steps, and how the interval closed in"
    assert not [one for one in app.button if one.label == "Copy into a new run"]


def test_a_working_race_shows_its_standing_and_can_be_stopped(open_page, run_store):
    folder = make_watched_race(run_store)
    set_state(folder, RunState.RUNNING)
    app = open_page("run", run=folder.id)
    assert not app.exception
    assert "Racing: 16 rounds in 32 s of at most 10 min" in said(app.get("progress")[0].proto.text)
    assert len(charts(app)) == 1
    assert "| optimised | faster |" in texts(app)
    app.button(key="cancel").click().run()
    assert folder.cancel_flag.exists()


def test_a_race_of_arms_that_were_told_the_same_says_so(open_page, run_store):
    folder = make_watched_race(run_store, options=THREE)
    for state in (RunState.DONE, RunState.RUNNING):
        set_state(folder, state)
        app = open_page("run", run=folder.id)
        assert not app.exception
        shown = texts(app).replace("\\", "").replace("- ", "").split("\n")
        assert [text for text in shown if text.startswith("baseline (A) and baseline (C) have the same options")], state


def test_a_race_that_ended_in_its_first_round_says_so(open_page, run_store):
    folder = make_watched_race(run_store)
    folder.blocks.unlink()
    set_state(folder, RunState.CANCELLED, "Canceled before the first round.")
    app = open_page("run", run=folder.id)
    assert not app.exception
    assert "ended before its first round was complete" in app.info[1].value.replace("\\", "")


def test_a_race_cannot_fill_the_form(run_store):
    folder = make_watched_race(run_store, 8)
    with pytest.raises(OptionsError, match="is a race"):
        read_origin(f"run:{folder.id}", run_store)


def test_progress_counts_rounds_and_names_those_left_out():
    progress = summarize([RaceEvent(10, 9, 45, 30.0, 100.0, [])])
    assert progress.text.startswith("Racing: 10 rounds (1 disturbed and left out)")
    assert progress.fraction == pytest.approx(0.3)


@pytest.mark.slow
def test_intervals_close_in_look_by_look(run_store):
    folder = make_watched_race(run_store, options=THREE)
    events = [event for event in read_events(folder.events) if isinstance(event, RaceEvent)]
    rounds = read_rounds(read_table(folder.blocks, BLOCKS), 3)
    figure = closing_intervals(rounds, events, THREE)
    drawn = [trace for trace in figure.data if trace.error_y.array is not None]
    assert [trace.name for trace in drawn] == [f"{name}, with its interval" for name in THREE.arm_names[1:]]
    lines = {trace.name: trace.y for trace in figure.data}
    for trace in drawn:
        so_far = lines[trace.name.replace("with its interval", "estimate so far")]
        assert so_far[int(trace.customdata[-1][1]) - 1] == pytest.approx(trace.y[-1])
        widths = [up + down for up, down in zip(trace.error_y.array, trace.error_y.arrayminus, strict=True)]
        assert widths[-1] < widths[0]
        assert trace.y[-1] == pytest.approx(-20, abs=3)


def test_each_round_is_a_dot_from_the_first_one_on():
    times_ns = np.array([[20e6, 15e6], [20e6, 16e6], [20e6, 14e6]])
    rounds = Rounds(times_ns, np.zeros((3, 2)))
    first = closing_intervals(Rounds(times_ns[:1], np.zeros((1, 2))), [], WORDS)
    assert [list(trace.y) for trace in first.data if trace.x[0] is not None] == [[pytest.approx(-25)]] * 2
    assert "After 1 round optimised takes 25 % less time" in caption_of(first)
    figure = closing_intervals(rounds, [], WORDS)
    assert figure.layout.xaxis.range == (0.5, 3.5), "the axis ends where the data do"
    assert (figure.layout.xaxis.tick0, figure.layout.xaxis.dtick) == (0, 1), "ticks stand at whole rounds"
    so_far = next(trace for trace in figure.data if "so far" in trace.name)
    assert list(so_far.y) == pytest.approx([-25, -22.5, -25], abs=0.2)
    none = Rounds(np.zeros((0, 2)), np.zeros((0, 2)))
    assert isinstance(closing_intervals(none, [], WORDS), Unavailable)


def test_before_the_first_look_the_table_says_what_the_rounds_measured():
    early = RaceEvent(
        1, 1, 45, 1.0, 100.0, [{"arm": 1, "pairs": 0, "ratio": None, "low": None, "high": None, "outcome": "undecided"}]
    )
    first = Rounds(np.array([[20e6, 15e6]]), np.zeros((1, 2)))
    assert standing_table(early, WORDS, first).rows == (
        ("optimised", "too early to tell", "0.750", "in a few rounds", "1"),
    )
    none = Rounds(np.zeros((0, 2)), np.zeros((0, 2)))
    assert standing_table(early, WORDS, none).rows[0][2:] == ("–", "in a few rounds", "0")
