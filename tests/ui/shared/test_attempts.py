"""Analyses that the app starts: few at a time, whoever opens how many runs."""

import threading
from pathlib import Path

import pytest

from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.ui.shared import analyses
from pipeline_lab.ui.shared.analyses import FOLLOW, MOST_AT_ONCE, Attempts
from tests.support.patience import PATIENCE_S, until


def test_only_a_few_analyses_run_at_a_time_and_all_get_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    at_work: list[list[str]] = []
    may_end = threading.Event()

    def call(command: list[str], **_: object) -> int:
        at_work.append(command)
        may_end.wait(PATIENCE_S)
        return 0

    monkeypatch.setattr(analyses.subprocess, "call", call)
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


def test_an_analysis_that_cannot_be_started_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(*_: object, **__: object) -> int:
        raise OSError("no processes left")

    monkeypatch.setattr(analyses.subprocess, "call", call)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    attempt = Attempts().start(RunFolder(Path("/runs/a")))
    until(lambda: not attempt.is_running, "it has ended")
    assert attempt.has_failed
    assert not attempt.may_be_repeated
