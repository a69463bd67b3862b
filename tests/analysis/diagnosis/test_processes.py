"""Which traces are read in processes of their own, and that none of their results is lost or told twice."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pipeline_lab.analysis.diagnosis import processes
from pipeline_lab.analysis.diagnosis.executors import MANY, SMALL_BYTES, processes_if_many
from pipeline_lab.analysis.diagnosis.processes import spread_over_processes
from pipeline_lab.runs.machine import limits
from tests.support.leaving import leave_once


@pytest.mark.slow
def test_of_a_share_that_is_lost_every_result_comes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))  # nothing for new processes to load
    monkeypatch.setattr(processes, "LEAST_SHARES", 2)
    items = [tmp_path / name for name in ("one", "two", "three", "four")]  # in shares of two
    for item in items:
        if item.name != "two":
            item.touch()
    found = list(spread_over_processes(leave_once, items, workers=1))
    assert sorted(found) == [(0, "one"), (1, "two"), (2, "three"), (3, "four")]


@dataclass(frozen=True)
class Sized:
    size_bytes: int


@pytest.mark.parametrize(
    ("files", "size_bytes", "cores", "most", "workers"),
    [
        (MANY, 1000, 8.0, None, 2),
        (10 * MANY, 1000, 8.0, None, 8),
        (10 * MANY, 1000, 8.0, 2, 2),
        (10 * MANY, 1000, 1.5, None, None),
        (MANY - 1, 1000, 8.0, None, None),
        (MANY, SMALL_BYTES + 1, 8.0, None, None),
    ],
)
def test_processes_are_begun_for_very_many_small_traces(
    files: int, size_bytes: int, cores: float, most: int | None, workers: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def spread(_: Any, items: Sequence[Any], at_once: int) -> Iterator[tuple[int, Any]]:
        asked.append(at_once)
        return iter(enumerate(items))

    monkeypatch.setattr(processes, "spread_over_processes", spread)
    monkeypatch.setattr(limits, "usable_cores", lambda: cores)
    found = dict(processes_if_many(most)(lambda item: item, [Sized(size_bytes)] * files))
    assert (asked or [None]) == [workers]
    assert len(found) == files
