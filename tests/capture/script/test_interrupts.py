"""An interrupt that comes while an object is given up is raised in the script, as it is for one without a ``__del__``."""

import _thread
import signal
import sys
import time
from collections.abc import Iterator

import pytest

from pipeline_lab.capture.script.interrupts import keep_interrupts
from tests.support.patience import PATIENCE_S


def give_up(_object: object) -> None:
    """Be interrupted, as by Ctrl-C while C++ tears something down."""
    _thread.interrupt_main()
    sum(range(1000))


def break_off(_object: object) -> None:
    raise ValueError


def wait() -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        time.sleep(0.001)


def given_up(end: object) -> None:
    made = type("Made", (), {"__del__": end})()
    del made


@pytest.fixture(autouse=True)
def _takes_interrupts() -> Iterator[None]:
    """Take interrupts, which the processes of a spread test run ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_comes_again_in_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    others = list[object]()
    monkeypatch.setattr(sys, "unraisablehook", lambda dropped: others.append(dropped.exc_type))
    keep_interrupts(give_up)
    given_up(give_up)
    with pytest.raises(KeyboardInterrupt):
        wait()
    assert not others
    given_up(break_off)
    assert others == [ValueError], "everything else is reported as before"
