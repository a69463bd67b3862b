from pipeline_lab.runs.run_events import (
    CaptureProgressEvent,
    DataProgressEvent,
    FailureEvent,
    NoteEvent,
    PhaseEvent,
    ProgressEvent,
)
from pipeline_lab.ui.run.live import summarise
from tests.support.run_folders import window_event


def test_nothing_yet_is_starting():
    progress = summarise([])
    assert (progress.text, progress.fraction, progress.windows) == ("Starting", None, 0)


def test_the_last_event_wins():
    assert summarise([PhaseEvent("importing")]).text == "Loading TensorFlow"
    assert summarise([PhaseEvent("data")]).text == "Preparing data"
    assert summarise([PhaseEvent("data"), DataProgressEvent(3, 8)]).text == "Writing the data files: 3 of 8"


def test_steps_give_a_fraction():
    progress = summarise([PhaseEvent("training"), ProgressEvent(50, 200, 1.0, None)])
    assert (progress.text, progress.fraction) == ("Training: step 50 of 200", 0.25)


def test_a_job_by_the_clock_counts_seconds():
    progress = summarise([ProgressEvent(1234, None, 15.0, 60.0)])
    assert (progress.text, progress.fraction) == ("Training: 1,234 steps in 15 s of 60 s", 0.25)


def test_windows_of_a_running_job_are_counted():
    progress = summarise([PhaseEvent("capturing"), CaptureProgressEvent(2, 8)])
    assert (progress.text, progress.fraction) == ("Recording windows of the job: 2 of 8", 0.25)


def test_a_phase_that_this_version_does_not_know_is_shown_as_it_is():
    assert summarise([PhaseEvent("teleporting")]).text == "Teleporting"


def test_windows_notes_and_failure_are_kept():
    failure = FailureEvent("It broke.", "Traceback")
    progress = summarise([window_event(0, 5), NoteEvent("Mind this."), window_event(1, 55), failure])
    assert (progress.windows, progress.notes, progress.failure) == (2, ("Mind this.",), failure)
