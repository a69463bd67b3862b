"""The traces of many hosts, divided up among processes: the same diagnosis whoever read them and whenever they came back."""

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from pipeline_lab.analysis.diagnosis import diagnose
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.spreading import in_turn
from pipeline_lab.errors import RunFailedError
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.executors.local import LocalExecutor
from tests.analysis.test_diagnosis import write_log
from tests.support.leaving import leave, leave_once

Item = TypeVar("Item")
Result = TypeVar("Result")
HOSTS = 4


def write_hosts(path: Path) -> Path:
    """Write two windows of four hosts, the second window first on the disk; one trace cannot be read."""
    for window, at_ms in (("b", 100), ("a", 0)):
        for host in range(HOSTS):
            write_log(path, window, at_ms, f"host-{host}")
    (path / "plugins" / "profile" / "b" / "host-9.xplane.pb").write_bytes(b"nothing that a trace begins with")
    return path


def told(found: Diagnosis) -> dict[str, object]:
    """Return a diagnosis as a document, so that two can be compared."""
    return found.to_json()


def in_disorder(task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
    done = list(in_turn(task, items))
    random.Random(1).shuffle(done)
    return iter(done)


def test_the_order_in_which_traces_come_back_changes_nothing(tmp_path: Path):
    log = write_hosts(tmp_path)
    told_progress: list[tuple[int, int]] = []
    found = diagnose(log, spread=in_disorder, progress=lambda done, total, _: told_progress.append((done, total)))
    assert found.source.hosts == tuple(f"host-{host}" for host in range(HOSTS))
    assert told(found) == told(diagnose(log))
    assert told_progress == [(done, 2 * HOSTS + 1) for done in range(2 * HOSTS + 1)]


def test_processes_read_the_traces_of_many_hosts_to_the_same_diagnosis(tmp_path: Path):
    log = write_hosts(tmp_path)
    executor = LocalExecutor(RunStore(tmp_path / "store"), workers=2)
    assert told(diagnose(log, spread=executor.spread)) == told(diagnose(log))


def test_a_task_whose_process_is_killed_is_done_again(tmp_path: Path):
    executor = LocalExecutor(RunStore(tmp_path / "store"), workers=1)
    found = executor.spread(leave_once, [tmp_path / "one", tmp_path / "two"])
    assert dict(found) == {0: "one", 1: "two"}


def test_a_task_that_is_always_lost_ends_with_the_reason(tmp_path: Path):
    executor = LocalExecutor(RunStore(tmp_path / "store"), workers=1)
    with pytest.raises(RunFailedError, match="was lost 3 times with the process or machine"):
        dict(executor.spread(leave, [1]))
