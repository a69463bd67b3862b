"""The traces of many hosts, divided up among processes: the same diagnosis whoever read them and whenever they came back."""

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import pytest

from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.diagnosis.executors import in_turn
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.errors import RunFailedError
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.executors.local import LocalExecutor, spread_over
from tests.analysis.diagnosis.test_diagnose import write_log
from tests.support.leaving import leave, leave_once

Item = TypeVar("Item")
Result = TypeVar("Result")
HOSTS = 4


@pytest.fixture(autouse=True)
def _plain_main(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave new processes nothing to load as main: what tests of the app have put there is no file of theirs."""
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))


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


@pytest.mark.slow
def test_the_order_in_which_traces_come_back_changes_nothing(tmp_path: Path):
    log = write_hosts(tmp_path)
    told_progress: list[tuple[int, int]] = []
    found = diagnose(log, spread=in_disorder, progress=lambda done, total, _: told_progress.append((done, total)))
    assert found.source.hosts == tuple(f"host-{host}" for host in range(HOSTS))
    assert told(found) == told(diagnose(log))
    assert told_progress == [(done, 2 * HOSTS + 1) for done in range(2 * HOSTS + 1)]


@pytest.mark.slow
def test_processes_read_the_traces_of_many_hosts_to_the_same_diagnosis(tmp_path: Path):
    log = write_hosts(tmp_path)
    executor = LocalExecutor(RunStore(tmp_path / "store"), workers=2)
    assert told(diagnose(log, spread=executor.spread)) == told(diagnose(log))


@pytest.mark.slow
def test_a_task_whose_process_is_killed_is_done_again_and_those_that_wait_lose_no_attempt(tmp_path: Path):
    """Each of three is lost once; the last one waits while the pool breaks for the two before it."""
    executor = LocalExecutor(RunStore(tmp_path / "store"), workers=1)
    found = executor.spread(leave_once, [tmp_path / name for name in ("one", "two", "three")])
    assert dict(found) == {0: "one", 1: "two", 2: "three"}


@pytest.mark.slow
def test_a_task_that_is_always_lost_ends_with_the_reason(tmp_path: Path):
    executor = LocalExecutor(RunStore(tmp_path / "store"), workers=1)
    with pytest.raises(RunFailedError, match="was lost 3 times with the process or machine"):
        dict(executor.spread(leave, [1]))


@pytest.mark.slow
def test_nobody_is_connected_to_while_there_is_nothing_to_do(tmp_path: Path):
    store = RunStore(tmp_path / "store")
    assert dict(spread_over("nonsense", store)(len, [])) == {}
    assert dict(spread_over(None, store, 1)(len, ["a", "bb"])) == {0: 1, 1: 2}
