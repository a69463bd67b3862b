"""The compiled loops that match, sort and sum rows, against the same in plain Python."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline_lab.analysis.tf_data import kernels
from pipeline_lab.analysis.tf_data.element_links import _by_call
from pipeline_lab.analysis.tf_data.kinds import EventRole
from pipeline_lab.analysis.tf_data.stage_facts import _count_iterators

IDS = st.one_of(st.integers(0, 6), st.integers(-(2**63), 2**63 - 1))
ROLES = st.sampled_from(
    [EventRole.FUNCTION, EventRole.BACKGROUND_FUNCTION, EventRole.PROCESS, EventRole.DONE, EventRole.OPERATION]
)
ROWS = st.lists(st.tuples(IDS, st.booleans(), ROLES, st.integers(-1, 3)), max_size=40)
FACTORS = st.integers(0, 2**62 - 1).map(lambda each: each | 1)


def match(rows: list[tuple[int, bool, EventRole, int]], factor: int) -> tuple[list[int], list[int], list[int]]:
    ids, known, role, stage = (
        np.array(column, kind)
        for column, kind in zip(
            list(zip(*rows, strict=True)) or [(), (), (), ()], (np.int64, np.bool_, np.int8, np.int32), strict=True
        )
    )
    size = 1 << (2 * len(rows)).bit_length()
    table = (np.zeros(size, np.int64), np.full(size, -1, np.int32), factor)
    calls, runs, call = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64), np.empty(len(rows), np.int32)
    numbers = np.arange(len(rows), dtype=np.int64)
    found, matched = kernels.match_calls(numbers, (ids, known), (role, stage), table, calls, (runs, call))
    return calls[:found].tolist(), runs[:matched].tolist(), call[:matched].tolist()


@given(rows=ROWS, factor=FACTORS)
@example(rows=[], factor=1)
@example(
    rows=[(5, True, EventRole.FUNCTION, 0), (5, True, EventRole.FUNCTION, 1), (5, True, EventRole.DONE, -1)], factor=1
)
def test_a_run_belongs_to_the_first_call_with_its_id(rows: list[tuple[int, bool, EventRole, int]], factor: int) -> None:
    calls: list[int] = []
    number_of: dict[int, int] = {}
    for row, (key, known, role, stage) in enumerate(rows):
        if known and role in (EventRole.FUNCTION, EventRole.BACKGROUND_FUNCTION) and stage >= 0:
            number_of.setdefault(key, len(calls))
            calls.append(row)
    runs = [
        (row, number_of[key])
        for row, (key, known, role, _) in enumerate(rows)
        if known and role in (EventRole.PROCESS, EventRole.DONE) and key in number_of
    ]
    assert match(rows, factor) == (calls, [row for row, _ in runs], [number for _, number in runs])


@given(numbers=st.lists(st.integers(0, 5)))
def test_rows_are_sorted_by_number_and_stay_in_order_otherwise(numbers: list[int]) -> None:
    number, rows = np.array(numbers, np.int32), np.arange(len(numbers), dtype=np.int64) * 10
    ends, out = np.zeros(7, np.int64), np.empty(len(numbers), np.int64)
    kernels.sort_by_number(rows, number, ends, out)
    assert out.tolist() == rows[np.argsort(number, kind="stable")].tolist()
    assert ends[:-1].tolist() == [numbers_below(numbers, each + 1) for each in range(6)]


def numbers_below(numbers: Iterable[int], limit: int) -> int:
    return sum(each < limit for each in numbers)


@given(values=st.lists(st.tuples(st.integers(-1, 3), st.integers(-100, 100))))
def test_values_add_up_by_stage(values: list[tuple[int, int]]) -> None:
    stage, value = np.array([[-1, 0], *values], np.int64)[1:].T
    total = np.zeros(4, np.int64)
    kernels.add_by_stage(np.arange(len(values), dtype=np.int64), value, stage.astype(np.int32), total)
    assert total.tolist() == [sum(one for at, one in values if at == number) for number in range(4)]


def test_a_run_inside_another_one_adds_nothing_to_its_stage() -> None:
    start, end = np.array([0, 10, 12, 30], np.int64), np.array([100, 20, 14, 37], np.int64)
    around, role = (
        np.array([-1, 0, 1, 0], np.int32),
        np.array([EventRole.ITERATOR, EventRole.PROCESS, EventRole.DONE, EventRole.PROCESS], np.int8),
    )
    stage, total = np.array([0, 1, 1, -1], np.int32), np.zeros(2, np.int64)
    kernels.add_runs(np.array([1, 2, 3], np.int64), (start, end, around, role, stage), total)
    assert total.tolist() == [0, 10]


@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50))))
def test_each_name_spans_from_its_first_start_to_its_last(rows: list[tuple[int, int]]) -> None:
    name, start = np.array([[0, 0], *rows], np.int64)[1:].T
    first, last = np.full(4, 99), np.full(4, -1)
    kernels.find_spans(np.arange(len(rows), dtype=np.int64), start, name.astype(np.int32), first, last)
    for number in range(4):
        starts = [at for one, at in rows if one == number]
        assert (first[number], last[number]) == (min(starts, default=99), max(starts, default=-1))


def test_only_a_call_in_the_background_ends_with_the_handover_of_its_result() -> None:
    role = np.array([EventRole.FUNCTION, EventRole.BACKGROUND_FUNCTION, EventRole.DONE, EventRole.DONE], np.int8)
    row_end, stage = np.array([10, 20, 30, 40], np.int64), np.array([2, 5, -1, -1], np.int32)
    end = np.array([10, -1], np.int64)
    runs = np.array([2, 3], np.int64), np.array([0, 1], np.int32)
    kernels.end_calls(runs, np.array([0, 1], np.int64), (row_end, role, stage), end)
    assert end.tolist() == [10, 40]
    assert stage.tolist() == [2, 5, 2, 5]


@given(runs=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9))))
def test_the_runs_of_a_call_lie_together_by_start(runs: list[tuple[int, int]]) -> None:
    call, start = np.array([[0, 0], *runs], np.int64)[1:].T
    rows = np.arange(len(runs), dtype=np.int64)
    first_run, ordered = _by_call(cast(Any, SimpleNamespace(start_ns=start)), rows, call.astype(np.int32), 4)
    assert ordered.tolist() == np.lexsort((start, call)).tolist()
    assert first_run.tolist() == [numbers_below(call.tolist(), number) for number in range(5)]


def test_iterators_but_the_last_one_of_a_stage_found_their_end() -> None:
    threads = SimpleNamespace(name=np.array([0, 0, 7, 9], np.int32), start_ns=np.array([0, 5, 10, 3], np.int64))
    assert _count_iterators(cast(Any, threads), np.arange(3)) == (2, 1)
    assert _count_iterators(cast(Any, threads), np.arange(4)) == (3, 2)
    assert _count_iterators(cast(Any, threads), np.arange(0)) == (0, 0)
