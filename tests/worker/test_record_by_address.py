"""What ``capture`` makes of a job that works, idles, ends, or is not there; the job is the test's own process of TensorFlow."""

from pathlib import Path

import pytest

from pipeline_lab.runs.run_events import WindowEvent, read_events
from pipeline_lab.runs.store import RunStore
from tests.support.patience import unless_late

pytestmark = pytest.mark.tensorflow


@unless_late
@pytest.mark.parametrize(
    ("job", "state", "reason", "windows"),
    [
        ("works", "done", "", 2),
        ("ends", "done", "ended, or stopped answering, after 1 window; what was recorded is kept.", 1),
        ("idles", "failed", "but all windows are empty", 0),
        ("nowhere", "failed", "Nothing answers at localhost:", 0),
    ],
)
def test_a_series_keeps_what_it_got(
    ask_tensorflow, tmp_path: Path, job: str, state: str, reason: str, windows: int
) -> None:
    run, ended, why = ask_tensorflow("tests.capture.recording_tasks:record_by_address", store=str(tmp_path), job=job)
    assert ended == state
    assert reason in why
    assert bool(why) == bool(reason)
    folder = RunStore(tmp_path).folder(run)
    events = read_events(folder.events)
    assert len(folder.windows()) == windows
    assert [event.name for event in events if isinstance(event, WindowEvent)] == [
        f"window-{number:04d}" for number in range(1, windows + 1)
    ]
