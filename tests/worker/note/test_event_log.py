import errno
import os
import time
from pathlib import Path

import pytest

from pipeline_lab.runs.run_events import NoteEvent, PhaseEvent, read_events
from pipeline_lab.worker.note.event_log import EventLog, find_offset_ns


def test_events_are_there_as_soon_as_they_are_written(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl")
    written = [PhaseEvent("data"), NoteEvent("Grüße, ☃")]
    for event in written:
        log.write(event)
    assert read_events(tmp_path / "events.jsonl") == written


def test_a_line_that_does_not_fit_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    log.write(PhaseEvent("data"))
    whole = path.read_bytes()
    write = os.write

    def write_a_little(handle: int, data: bytes) -> int:
        if len(data) < 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, data[:10])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write_a_little)
        with pytest.raises(OSError, match="No space left"):
            log.write(PhaseEvent("building"))
    assert path.read_bytes() == whole
    log.write(NoteEvent("after"))
    assert len(read_events(path)) == 2


def test_two_clocks_are_compared_where_nothing_came_between_the_looks_at_them(monkeypatch: pytest.MonkeyPatch) -> None:
    now, pauses = 0, iter([0, 10_000_000])  # between the first look at the other clock and the second one at this

    def look() -> int:
        nonlocal now
        now += next(pauses, 0)
        return now

    monkeypatch.setattr(time, "time_ns", lambda: now + 1_000)
    assert find_offset_ns(look) == 1_000
