import io

from rich.console import Console

from pipeline_lab.cli.following import RunProgress
from pipeline_lab.runs.launch.launcher import Update
from pipeline_lab.runs.record import RunRecord, RunState, RunStatus
from pipeline_lab.runs.run_events import DataProgressEvent, Event, NoteEvent, PhaseEvent, ProgressEvent, WindowEvent
from pipeline_lab.ui.run.live import summarize


def shown(*updates: Update, terminal: bool) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=200, color_system=None)
    with RunProgress(console) as progress:
        for update in updates:
            progress.show(update)
            progress._bar.refresh()
    return console.file.getvalue()


def update(*events: Event, state: RunState = RunState.RUNNING, runs_before: int | None = None) -> Update:
    return Update(RunRecord("id", "name", RunStatus(state)), events, runs_before)


WINDOW = WindowEvent("w0", 5, 14, 1, 2, 3, 4, 5, 6, 7, 8, False)


def test_a_terminal_shows_steps_speed_and_windows() -> None:
    events = (PhaseEvent("training"), WINDOW, ProgressEvent(50, 200, 4.0, None))
    text = shown(update(*events), terminal=True)
    assert "training" in text
    assert "50/200 steps · 12.5 steps/s · 1 window" in text


def test_a_job_limited_by_time_has_no_total_of_steps() -> None:
    text = shown(update(PhaseEvent("training"), ProgressEvent(50, None, 5.0, 60.0)), terminal=True)
    assert "50 steps · 10 steps/s · 0 windows" in text


def test_data_in_the_making_is_counted() -> None:
    text = shown(update(PhaseEvent("data"), DataProgressEvent(3, 8)), terminal=True)
    assert "preparing data" in text
    assert "3/8 files" in text


def test_a_log_file_gets_a_line_per_phase_and_note() -> None:
    updates = [update(PhaseEvent("data")), update(PhaseEvent("data")), update(NoteEvent("[b]half[/] full"))]
    assert shown(*updates, terminal=False) == "preparing data\n[b]half[/] full\n"


def test_the_place_in_the_queue_is_told_once() -> None:
    waiting = [update(state=RunState.QUEUED, runs_before=before) for before in (2, 2, 1, 0)]
    text = shown(*waiting, terminal=False)
    assert text == "queued after 2 other runs\nqueued after one other run\n"


def test_a_phase_has_the_words_that_the_app_has() -> None:
    assert (
        shown(update(PhaseEvent("calibrating")), terminal=False)
        == "timing the compute-only step and the input-only pipeline\n"
    )
    assert summarize([PhaseEvent("calibrating")]).text == "Timing the compute-only step and the input-only pipeline"


def test_an_unknown_phase_shows_as_it_is() -> None:
    assert shown(update(PhaseEvent("polishing")), terminal=False) == "polishing\n"
