"""What a training of one's own records; see also the real jobs."""

from pathlib import Path

import pytest

from pipeline_lab.runs.events import ProgressEvent, WindowEvent, read_events
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.store import RunStore

STEPS = 40


@pytest.mark.tensorflow
def test_a_recording_can_be_stopped_and_the_training_goes_on(ask_tensorflow, tmp_path: Path):
    taken, run = ask_tensorflow("stop_recording", store=str(tmp_path))
    assert taken == STEPS
    status = RunStore(tmp_path).read(run).status
    assert (status.state, status.reason) == (RunState.CANCELLED, "Recording was stopped; the training went on.")
    events = read_events(RunStore(tmp_path).folder(run).events)
    assert [event for event in events if isinstance(event, WindowEvent)]
    assert max(event.steps for event in events if isinstance(event, ProgressEvent)) < STEPS
