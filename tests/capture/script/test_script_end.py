"""How a watched script's run ends, for the run and for the person at the terminal."""

from pathlib import Path

import pytest

from pipeline_lab.capture.recording import Recording
from pipeline_lab.capture.script import script_end
from pipeline_lab.capture.script.script_end import NO_TENSORFLOW, ScriptEnd
from pipeline_lab.hooks import Program, module_of
from pipeline_lab.runs.launch.runtime import module_command
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_events import FailureEvent, NoteEvent, read_events
from pipeline_lab.runs.store import RunStore


@pytest.mark.parametrize("is_quiet", [False, True])
def test_a_script_without_tensorflow_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_quiet: bool
) -> None:
    recording = Recording(RunStore(tmp_path), "train.py", tags=())
    ending = ScriptEnd(recording, lambda: NO_TENSORFLOW, is_quiet=is_quiet)
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


def test_a_run_ends_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = Recording(RunStore(tmp_path), "train.py", tags=())
    ending = ScriptEnd(recording, lambda: NO_TENSORFLOW, is_quiet=False)
    ending.by_exit(0)
    ending.by_exit(3, "The script called os._exit(3) at train.py, line 9.", "Traceback …")
    assert capsys.readouterr().err == f"pipeline-lab: {NO_TENSORFLOW}\n"
    assert [type(event) for event in read_events(recording.folder.events)] == [NoteEvent]


def test_ctrl_c_once_more_ends_the_run_too(tmp_path: Path) -> None:
    def finish() -> str:
        raise KeyboardInterrupt

    recording = Recording(RunStore(tmp_path), "train.py", tags=())
    with pytest.raises(KeyboardInterrupt):
        ScriptEnd(recording, finish, is_quiet=True).by_interrupt()
    assert RunStore(tmp_path).read(recording.folder.id).status.state is RunState.CANCELLED


@pytest.mark.parametrize(("is_quiet", "told"), [(False, 1), (True, 0)])
@pytest.mark.parametrize("problem", ["", "Recording stopped (OSError: no); the script went on."])
def test_the_verdict_is_told_by_a_process_of_its_own_unless_quiet(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    problem: str,
    *,
    is_quiet: bool,
    told: int,
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(script_end.subprocess, "run", lambda command, **_: started.append(command))
    recording = Recording(RunStore(tmp_path), "train.py", tags=())
    ScriptEnd(recording, lambda: problem, is_quiet=is_quiet).by_exit(0)
    assert started == [module_command(module_of(Program.CLOSING), str(recording.folder.path))] * told
    assert capsys.readouterr().err == (f"pipeline-lab: {problem}\n" if problem and told else "")
