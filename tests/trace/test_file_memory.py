"""Columns of a trace larger than memory: on disk, and the same numbers."""

import mmap
import os
from pathlib import Path

import numpy as np
import pytest

from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace import file_memory
from pipeline_lab.trace.xplane import xspace
from pipeline_lab.trace.xplane.xspace import read_xplane
from tests.support.xspace import XSpace


def test_a_large_trace_reads_the_same_from_columns_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space = XSpace()
    line = space.plane("/host:CPU").line("python", timestamp_ns=5)
    for number in range(200):
        line.event(f"op {number % 3}", start_us=number, duration_us=0.5, id=number)
    path = space.write(tmp_path / "h.xplane.pb")
    in_memory = read_xplane(path).planes[0].lines[0]
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(xspace, "MOST_IN_MEMORY", 0)
    on_disk = read_xplane(path).planes[0].lines[0]
    assert not on_disk.start_ns.base.flags.owndata
    assert not list(folder.iterdir())
    for name in ("start_ns", "duration_ns", "name_index"):
        assert np.array_equal(getattr(on_disk, name), getattr(in_memory, name))
    assert on_disk.stats.ints(np.array([7, 199]), "id")[0].tolist() == [7, 199]


def test_a_line_without_events_may_end_a_file_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xspace, "MOST_IN_MEMORY", 0)
    space = XSpace()
    plane = space.plane("/host:CPU")
    for number in range(2 * mmap.PAGESIZE // 8):  # so that the columns end where a page does
        plane.line("python").event("op", start_us=number, duration_us=1)
    plane.line("empty")
    lines = read_xplane(space.write(tmp_path / "h.xplane.pb")).planes[0].lines
    assert sum(line.count for line in lines) == 2 * mmap.PAGESIZE // 8


def test_a_full_disk_is_one_sentence_and_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(TraceReadError, match="free some space there"):
        file_memory.empty_on_disk(8, np.int64)
