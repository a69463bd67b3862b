"""Analyses that the app starts: few at a time, whoever opens how many runs."""

import sys
import threading
from pathlib import Path

import pytest

from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis
from pipeline_lab.runs.launch.runtime import module_command
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.ui.shared import analyses
from pipeline_lab.ui.shared.analyses import FOLLOW, MOST_AT_ONCE, Attempts
from tests.support.patience import PATIENCE_S, until
from tests.support.recorded_run import set_state, write_run


def test_only_a_few_analyses_run_at_a_time_and_all_get_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    at_work: list[list[str]] = []
    may_end = threading.Event()

    class Process:
        def __init__(self, command: list[str], **_: object) -> None:
            at_work.append(command)

        def poll(self) -> int | None:
            return 0 if may_end.is_set() else None

        def wait(self, _timeout: float | None = None) -> int:
            may_end.wait(PATIENCE_S)
            return 0

    monkeypatch.setattr(analyses.subprocess, "Popen", Process)
    attempts = Attempts()
    folders = [RunFolder(Path(f"/runs/{number}")) for number in range(MOST_AT_ONCE + 3)]
    started = [attempts.start(folder) for folder in folders]
    until(lambda: len(at_work) == MOST_AT_ONCE, "as many run as may")
    following = attempts.start(RunFolder(Path("/runs/live")), FOLLOW)  # of which there is one at a time anyway
    until(lambda: len(at_work) == MOST_AT_ONCE + 1, "a live run is followed at once")
    assert attempts.start(folders[0]) is started[0]
    assert all(attempt.is_running for attempt in (*started, following))
    may_end.set()
    until(lambda: not any(attempt.is_running for attempt in (*started, following)), "all have ended")
    assert len(at_work) == len(folders) + 1


@pytest.mark.slow
def test_an_analysis_that_cannot_be_started_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object, **__: object) -> None:
        raise OSError("no processes left")

    monkeypatch.setattr(analyses.subprocess, "Popen", start)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    attempt = Attempts().start(RunFolder(Path("/runs/a")))
    until(lambda: not attempt.is_running, "it has ended")
    assert attempt.has_failed
    assert not attempt.may_be_repeated


@pytest.mark.slow
def test_a_run_that_is_over_does_not_wait_for_the_process_that_followed_it_at_the_lowest_priority(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = write_run(tmp_path / "run", state=RunState.RUNNING)
    followed = threading.Event()

    def command(module: str, *arguments: str) -> list[str]:
        if FOLLOW not in arguments:
            return module_command(module, *arguments)
        followed.set()
        return [sys.executable, "-c", "import time; time.sleep(3600)"]

    monkeypatch.setattr(analyses, "module_command", command)
    monkeypatch.setattr(analyses, "LAST_LOOK_S", 0.1)
    attempt = Attempts().start(folder, FOLLOW)
    until(followed.is_set, "the run is followed")
    assert not SavedDiagnosis(folder.path).is_fresh
    set_state(folder, RunState.DONE)
    until(lambda: not attempt.is_running, "it is analyzed")
    assert not attempt.has_failed
    assert SavedDiagnosis(folder.path).is_fresh
