"""A script that asks for a batch that never comes."""

import sys
import threading
from pathlib import Path
from types import FrameType

import pytest

from pipeline_lab.capture import standstill as standstill_module
from pipeline_lab.capture.standstill import Standstill

LOOKS = 100


def test_one_call_that_does_not_return_is_told_once_with_its_line() -> None:
    said: list[str] = []
    standstill = Standstill(Path(__file__).parent, said.append)
    thread = threading.Thread(target=lambda: [standstill.look(float(now_s)) for now_s in range(LOOKS)])
    thread.start()
    thread.join()  # where the main thread stands meanwhile
    (sentence,) = said
    assert sentence.startswith("Python has stood at test_standstill.py, line ")
    assert "for 65 s, inside one call" in sentence


def test_call_after_call_is_no_standstill(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask() -> FrameType:  # the same instruction of the same function, another call each time
        return sys._getframe()

    said: list[str] = []
    standstill = Standstill(Path(__file__).parent, said.append)
    monkeypatch.setattr(sys, "_current_frames", lambda: {threading.main_thread().ident: ask()})
    monkeypatch.setattr(standstill_module, "id", lambda _: 7, raising=False)  # all at one address
    for now_s in range(LOOKS):
        standstill.look(float(now_s))
    assert not said
