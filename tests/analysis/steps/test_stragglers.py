"""Hosts side by side; ms."""

import pyarrow as pa
import pytest

from pipeline_lab.analysis.steps.step_breakdown import PARTS, PARTS_TABLE, StepBreakdown, sum_up
from pipeline_lab.analysis.steps.stragglers import Hosts, compare_hosts, follow_last
from pipeline_lab.errors import TraceIncompleteError

MS = 1_000_000
FAST = {"device_compute": 10, "collective": 30}
WAITING = {"device_compute": 10, "collective": 5, "input_wait": 25}


def breakdown(**hosts: list[dict[str, int] | None]) -> StepBreakdown:
    """Return the steps of hosts by their parts; None for a step that was not recorded."""
    rows = [
        {
            "host": host,
            "window": 0,
            "step": step,
            "start_ns": 0,
            "end_ns": sum(parts.values()) * MS,
            **{part: parts.get(part.removesuffix("_ns"), 0) * MS for part in PARTS},
        }
        for host, steps in hosts.items()
        for step, parts in enumerate(steps)
        if parts is not None
    ]
    return sum_up(pa.Table.from_pylist(rows, schema=PARTS_TABLE))


def side_by_side(**hosts: list[dict[str, int] | None]) -> Hosts:
    return compare_hosts(breakdown(**hosts))


def test_the_host_that_waits_for_input_while_the_others_wait_for_it():
    found = side_by_side(a=[FAST] * 4, b=[WAITING] * 4, c=[FAST] * 4)
    assert found.straggler == "b"
    a, b, c = found.table.to_pylist()
    assert (b["last_in"], b["held_up_ns"] // MS, b["cause"]) == (4, 4 * 25, "input_wait")  # own time 35 against 10
    assert (b["own_ns"] // MS, b["collective_ns"] // MS, b["input_wait_ns"] // MS) == (35, 5, 25)
    assert [(row["median_ns"] // MS, row["held_up_ns"]) for row in (a, c)] == [(40, 0), (40, 0)]
    assert (found.common_steps, found.common_ns // MS) == (4, 160)


def test_the_host_that_comes_last_makes_the_step_as_long_as_it_is():
    # b comes last in step 0, a in step 1
    followed = follow_last(breakdown(a=[FAST, WAITING], b=[WAITING, {"device_compute": 5, "collective": 35}])).parts_ns
    assert {part: length // MS for part, length in followed.items() if length} == {
        "device_compute_ns": 20,
        "collective_ns": 10,
        "input_wait_ns": 50,
    }


def test_equal_hosts_have_no_straggler():
    assert side_by_side(a=[FAST] * 4, b=[FAST] * 4).straggler is None


def test_steps_without_length_have_no_straggler():
    assert side_by_side(a=[{}], b=[{}]).straggler is None


def test_taking_turns_at_being_last_holds_up_as_well():
    # each is last in two of four steps and costs 2 x 25 of 160 ms
    found = side_by_side(a=[FAST, WAITING] * 2, b=[WAITING, FAST] * 2)
    assert [row["last_in"] for row in found.table.to_pylist()] == [2, 2]
    assert [row["held_up_ns"] // MS for row in found.table.to_pylist()] == [50, 50]


def test_only_steps_that_all_hosts_recorded_are_compared():
    found = side_by_side(a=[FAST, FAST, None], b=[None, WAITING, WAITING])
    assert (found.common_steps, [row["steps"] for row in found.table.to_pylist()]) == (1, [2, 2])
    with pytest.raises(TraceIncompleteError, match="no step in common"):
        side_by_side(a=[FAST, None], b=[None, FAST])


def test_one_host_is_said():
    with pytest.raises(TraceIncompleteError, match="one host"):
        side_by_side(a=[FAST])
