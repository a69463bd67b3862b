from pipeline_lab.runs import run_events
from pipeline_lab.runs.run_events import (
    CaptureProgressEvent,
    DataProgressEvent,
    FailureEvent,
    NoteEvent,
    PhaseEvent,
    ProgressEvent,
    format_event,
)
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.ui.run.live import BEGINNING, progress_of, summarize
from tests.support.run_folders import window_event
from tests.ui.conftest import said


def test_nothing_yet_is_starting():
    progress = summarize([])
    assert (progress.text, progress.fraction, progress.windows) == ("Starting", None, 0)


def test_the_last_event_wins():
    assert summarize([PhaseEvent("importing")]).text == "Loading TensorFlow"
    assert summarize([PhaseEvent("data")]).text == "Preparing data"
    assert summarize([PhaseEvent("data"), DataProgressEvent(3, 8)]).text == "Writing the data files: 3 of 8"


def test_steps_give_a_fraction():
    progress = summarize([PhaseEvent("training"), ProgressEvent(50, 200, 1.0, None)])
    assert (progress.text, progress.fraction) == ("Training: step 50 of 200", 0.25)


def test_a_job_by_the_clock_counts_seconds():
    progress = summarize([ProgressEvent(1234, None, 15.0, 60.0)])
    assert (said(progress.text), progress.fraction) == ("Training: 1,234 steps in 15 s of 60 s", 0.25)


def test_windows_of_a_running_job_are_counted():
    progress = summarize([PhaseEvent("capturing"), CaptureProgressEvent(2, 8)])
    assert (progress.text, progress.fraction) == ("Recording windows of the job: 2 of 8", 0.25)


def test_a_phase_that_this_version_does_not_know_is_shown_as_it_is():
    assert summarize([PhaseEvent("teleporting")]).text == "Teleporting"


def test_windows_notes_and_failure_are_kept():
    failure = FailureEvent("It broke.", "Traceback")
    progress = summarize([window_event(0, 5), NoteEvent("Mind this."), window_event(1, 55), failure])
    assert (progress.windows, progress.notes, progress.failure) == (2, ("Mind this.",), failure)


def test_of_a_run_that_goes_on_only_new_events_are_read(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path)
    assert progress_of(folder) == BEGINNING
    parsed = []
    monkeypatch.setattr(
        run_events, "parse_event", lambda line, parse=run_events.parse_event: parsed.append(1) or parse(line)
    )
    events = [PhaseEvent("training"), NoteEvent("Mind this."), window_event(0, 5), ProgressEvent(50, 200, 1.0, None)]
    for number, event in enumerate(events):
        with folder.events.open("a") as file:
            file.write(format_event(event))
        assert progress_of(folder) == summarize(events[: number + 1])
    assert len(parsed) == len(events)
