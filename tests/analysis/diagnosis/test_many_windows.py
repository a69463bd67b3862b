"""A run that records many windows: each new one is added to what was made of the others, with the same result."""

import dataclasses
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from pipeline_lab.analysis.activity.step_spans import StepRule
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.diagnosis import executors, processes, trace_parts
from pipeline_lab.analysis.diagnosis.diagnose import RunFold
from pipeline_lab.analysis.diagnosis.trace_parts import TraceParts
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.steps import recorded_steps
from pipeline_lab.analysis.steps.recorded_steps import STEP_TABLE, Steps, merge_steps
from pipeline_lab.runs.machine import limits
from pipeline_lab.trace import parallel
from pipeline_lab.trace.parallel import beside
from tests.support.long_run import LongRun

WINDOWS = 14


def same(one: Any, other: Any) -> bool:
    """Say whether two results hold the same, tables included."""
    if isinstance(one, pa.Table):
        return bool(one.equals(other))
    if dataclasses.is_dataclass(one):
        return type(one) is type(other) and all(
            same(getattr(one, field.name), getattr(other, field.name)) for field in dataclasses.fields(one)
        )
    return bool(one == other)


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LongRun, Diagnosis, list[int]]]:
    """Follow a run window by window; yield what is known at the end, and how many windows were placed for each."""
    run = LongRun(tmp_path_factory.mktemp("runs") / "long")
    following, placed = RunFold(run.folder), []
    place = TraceParts.place
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TraceParts, "place", lambda *where: placed.append(1) or place(*where))
        counts = []
        for windows in range(1, WINDOWS + 1):
            run.grow(windows)
            placed.clear()
            following.add_new()
            found = following.diagnose()
            counts.append(len(placed))
    yield run, found, counts
    run.close()


@pytest.mark.slow
def test_a_run_followed_window_by_window_gives_what_it_gives_at_once(
    followed: tuple[LongRun, Diagnosis, list[int]],
) -> None:
    run, found, _ = followed
    at_once = RunFold(run.folder)
    at_once.add_new()
    whole = at_once.diagnose()
    assert whole.source.windows == WINDOWS
    differing = [
        field.name
        for field in dataclasses.fields(whole)
        if not same(getattr(whole, field.name), getattr(found, field.name))
    ]
    assert differing == []


@pytest.mark.slow
def test_a_new_window_leaves_the_others_as_they_are(followed: tuple[LongRun, Diagnosis, list[int]]) -> None:
    assert followed[2] == [1] * WINDOWS


@pytest.mark.slow
def test_very_many_windows_are_read_on_all_cores_with_the_same_result(
    followed: tuple[LongRun, Diagnosis, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, found, _ = followed
    monkeypatch.setattr(executors, "MANY", 2)
    monkeypatch.setattr(executors, "LEAST_EACH", 1)
    monkeypatch.setattr(limits, "usable_cores", lambda: 2.0)
    monkeypatch.setattr(processes, "LEAST_SHARES", 1)  # shares of seven windows
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))  # nothing for new processes to load
    monkeypatch.setattr(trace_parts, "analyze_trace", _never_here)
    at_once = RunFold(run.folder)
    at_once.add_new(spread=executors.processes_if_many())
    assert same(at_once.diagnose().steps, found.steps)
    assert at_once.diagnose().to_json() == found.to_json()


def _never_here(_: object) -> TraceParts:
    raise AssertionError("a trace was analyzed in this process")


@pytest.mark.slow
def test_a_window_that_comes_late_takes_its_place_in_time(tmp_path: Path) -> None:
    run = LongRun(tmp_path / "long")
    run.grow(10)
    run.close()
    late = run.folder.window("window-00005")
    late.rename(tmp_path / "late")
    following = RunFold(run.folder)
    following.add_new()
    following.diagnose()
    (tmp_path / "late").rename(late)
    following.add_new()
    at_once = RunFold(run.folder)
    at_once.add_new()
    assert same(following.diagnose().steps, at_once.diagnose().steps)
    assert same(following.diagnose().idle_gaps, at_once.diagnose().idle_gaps)


def steps(count: int, rule: StepRule, marker: str = "train", steps_per_marker: float | None = 1.0) -> Steps:
    start = list(range(count))
    table = tables.build(
        STEP_TABLE,
        count,
        host="",
        window=0,
        step=start,
        start_ns=start,
        end_ns=[one + 1 for one in start],
        wait_ns=0,
        exposed_ns=0,
        busy_ns=0,
    )
    return Steps(marker, steps_per_marker, table, first_step_only=False, rule=rule)


def test_steps_that_were_merged_merge_with_later_ones_as_all_of_them_do() -> None:
    host, device = StepRule.HOST_SPAN, StepRule.DEVICE_WORK
    parts = [steps(3, host, "a, b", 2.0), steps(2, device, "a, b", None), steps(4, device, "c", 5.0)]
    at_once = merge_steps(parts)
    assert (at_once.marker, at_once.rule, at_once.steps_per_marker) == ("a, b, c", device, (3 * 2 + 4 * 5) / 7)
    in_turn = merge_steps([merge_steps(parts[:2]), *parts[2:]])
    assert same(in_turn, at_once)


def test_the_rule_of_most_steps_stands_for_all() -> None:
    host, device = StepRule.HOST_SPAN, StepRule.DEVICE_WORK
    assert merge_steps([steps(3, host), steps(2, device), steps(2, device)]).rule is device
    assert merge_steps([steps(3, host), steps(1, device), steps(2, device)]).rule is host


@pytest.fixture
def short(tmp_path: Path) -> LongRun:
    """A run of one window."""
    run = LongRun(tmp_path / "short")
    run.grow(1)
    run.close()
    return run


def test_an_error_while_steps_are_found_beside_the_pipeline_is_raised_and_leaves_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch, short: LongRun
) -> None:
    monkeypatch.setattr(trace_parts, "WORTH_A_CORE", 1)
    monkeypatch.setattr(parallel, "_cores", lambda: 2)
    monkeypatch.setattr(recorded_steps, "find_steps", _fail)
    with pytest.raises(ZeroDivisionError):
        RunFold(short.folder).add_new()


@pytest.mark.parametrize("started", [0, 1])
def test_where_no_more_threads_can_start_an_error_is_raised_and_nobody_waits(
    monkeypatch: pytest.MonkeyPatch, short: LongRun, started: int
) -> None:
    left = [True] * started
    start = threading.Thread.start

    def start_some(thread: threading.Thread) -> None:
        if not left:
            raise RuntimeError("can't start new thread")
        left.pop()
        start(thread)

    monkeypatch.setattr(trace_parts, "WORTH_A_CORE", 1)
    monkeypatch.setattr(parallel, "_cores", lambda: 2)
    monkeypatch.setattr(threading.Thread, "start", start_some)
    with pytest.raises(RuntimeError, match="new thread"):
        RunFold(short.folder).add_new()


def _fail(_: object) -> Steps:
    raise ZeroDivisionError


def test_analyses_of_a_large_trace_run_beside_each_other_with_the_same_result(
    monkeypatch: pytest.MonkeyPatch, short: LongRun
) -> None:
    found = []
    for events in (trace_parts.WORTH_A_CORE, 1):
        monkeypatch.setattr(trace_parts, "WORTH_A_CORE", events)
        following = RunFold(short.folder)
        following.add_new()
        found.append(following.diagnose())
    assert found[0].to_json() == found[1].to_json()
    assert all(
        same(getattr(found[0], name.name), getattr(found[1], name.name)) for name in dataclasses.fields(found[0])
    )


def test_what_fails_beside_something_else_fails_here() -> None:
    def fail() -> None:
        raise ValueError("no such thread")

    assert beside(lambda: 1, lambda: "two") == (1, "two")
    with pytest.raises(ValueError, match="no such thread"):
        beside(lambda: 1, fail)
