"""How a watched script's run ends, for the run and for the person at the terminal."""

from pathlib import Path

import pytest

from pipeline_lab.capture.ending import NO_TENSORFLOW, Ending
from pipeline_lab.capture.recording import Recording
from pipeline_lab.runs.events import FailureEvent, NoteEvent, read_events
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.store import RunStore


@pytest.mark.parametrize("is_quiet", [False, True])
def test_a_script_without_tensorflow_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_quiet: bool
) -> None:
    recording = Recording(RunStore(tmp_path), "train.py", tags=())
    ending = Ending(recording, lambda: False, is_quiet=is_quiet)
    ending.greet()
    ending.warn("This may go wrong.")
    ending.by_exit(1, "The script stopped at train.py, line 3 with ValueError: no.", "Traceback …")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == (
        []
        if is_quiet
        else [
            f"pipeline-lab: recording into run {recording.folder.id}",
            "pipeline-lab: This may go wrong.",
            f"pipeline-lab: The script stopped at train.py, line 3 with ValueError: no. {NO_TENSORFLOW}",
        ]
    )
    status = RunStore(tmp_path).read(recording.folder.id).status
    assert (status.state, status.exit_code) == (RunState.FAILED, 1)
    note, failure, *_ = read_events(recording.folder.events)
    assert isinstance(note, NoteEvent)
    assert note.sentence == "This may go wrong."
    assert isinstance(failure, FailureEvent)
