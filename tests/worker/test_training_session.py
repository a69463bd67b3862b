"""What a training of one's own records; see also the real jobs."""

from pathlib import Path

import pytest

from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_events import ProgressEvent, WindowEvent, read_events
from pipeline_lab.runs.store import RunStore

STEPS = 40


@pytest.mark.tensorflow
def test_a_recording_can_be_stopped_and_the_training_goes_on(ask_tensorflow, tmp_path: Path):
    taken, run = ask_tensorflow("tests.capture.recording_tasks:stop_recording", store=str(tmp_path))
    assert taken == STEPS
    status = RunStore(tmp_path).read(run).status
    assert (status.state, status.reason) == (RunState.CANCELLED, "Recording was stopped; the training went on.")
    events = read_events(RunStore(tmp_path).folder(run).events)
    assert [event for event in events if isinstance(event, WindowEvent)]
    assert max(event.steps for event in events if isinstance(event, ProgressEvent)) < STEPS


@pytest.mark.tensorflow
def test_a_training_that_was_left_without_a_word_ends_when_the_next_one_begins(ask_tensorflow, tmp_path: Path):
    store = RunStore(tmp_path)
    left, again = ask_tensorflow("tests.capture.recording_tasks:train_again", store=str(tmp_path))
    assert store.read(left).status.state is RunState.FAILED
    assert "the next training began before this one had ended" in store.read(left).status.reason
    events = read_events(store.folder(again).events)
    assert [event.first_step for event in events if isinstance(event, WindowEvent)] == [0]


@pytest.mark.tensorflow
def test_a_callback_that_records_leaves_keras_reading_results_beside_the_training(ask_tensorflow, tmp_path: Path):
    is_asynchronous, run = ask_tensorflow("tests.capture.recording_tasks:fit_with_windows", store=str(tmp_path))
    assert is_asynchronous
    events = read_events(RunStore(tmp_path).folder(run).events)
    assert max(event.steps for event in events if isinstance(event, ProgressEvent)) == 8, "validation has no steps"
    assert next(event for event in events if isinstance(event, WindowEvent)).last_step == 0


@pytest.mark.tensorflow
def test_a_session_that_could_not_start_leaves_the_profiler_to_the_job(ask_tensorflow, tmp_path: Path):
    assert ask_tensorflow("tests.capture.recording_tasks:start_beside_another", folder=str(tmp_path)), (
        "the other session goes on"
    )
    assert list((tmp_path / "job").rglob("*.xplane.pb"))
