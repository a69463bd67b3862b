"""The timeline's segments keep the time that they stand for."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.idle.idle_gaps import MIXED_TABLE, DeviceTime, IdleGaps
from pipeline_lab.figures.timeline_chart import KINDS, row_segments, timeline_rows
from tests.support import results

ROW = (results.HOST, results.DEVICE, 0)


def gaps_of(lengths: list[tuple[bool, int]]) -> IdleGaps:
    """Build one window of alternating busy and idle stretches."""
    busy, gaps, at = [], [], 0
    for is_busy, length in lengths:
        if is_busy:
            busy.append((*ROW, at, at + length))
        else:
            gaps.append((0, at, length, GapCause.INPUT_WAIT, None))
        at += length
    busy_table = results.busy_table(busy) if busy else results.busy_table([(*ROW, 0, 0)]).slice(0, 0)
    return IdleGaps(results.DEVICE, (DeviceTime("gpu", 0, 0),), {}, results.gap_table(gaps), busy_table)


def test_few_intervals_are_drawn_as_they_are():
    segments = row_segments(gaps_of([(False, 30), (True, 15), (False, 5)]), ROW, cap=10)
    assert segments.start_ns.tolist() == [0, 30, 45]
    assert segments.end_ns.tolist() == [30, 45, 50]
    assert [KINDS[kind] for kind in segments.kind] == ["input_wait", "busy", "input_wait"]
    assert segments.resolution_ns is None


def test_short_gaps_that_are_not_drawn_one_by_one_are_a_stretch_that_counts_them():
    found = gaps_of([(True, 30), (False, 10)])
    stretch = {
        "host": ROW[0],
        "device": ROW[1],
        "window": ROW[2],
        "start_ns": 40,
        "end_ns": 60,
        "gaps": 4,
        "idle_ns": 5,
    }
    segments = row_segments(replace(found, mixed=pa.Table.from_pylist([stretch], MIXED_TABLE)), ROW, cap=10)
    assert [KINDS[kind] for kind in segments.kind] == ["busy", "input_wait", "short_gaps"]
    assert segments.operation.tolist() == ["", "", "4 gaps, 25 % of it idle"]


def test_many_intervals_become_what_fills_most_of_each_bin():
    mostly_busy = [(True, 9), (False, 1)] * 50
    mostly_idle = [(True, 2), (False, 8)] * 50
    segments = row_segments(gaps_of(mostly_busy + mostly_idle), ROW, cap=10)
    assert [KINDS[kind] for kind in segments.kind] == ["busy", "input_wait"]
    assert segments.start_ns.tolist() == [0, 500]
    assert segments.end_ns.tolist() == [500, 1000]
    assert segments.resolution_ns == 100


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 1000)), min_size=1, max_size=200), st.integers(1, 50))
@pytest.mark.slow
def test_segments_are_bounded_and_fill_the_window(lengths, cap):
    segments = row_segments(gaps_of(lengths), ROW, cap)
    assert len(segments.start_ns) <= cap
    assert segments.start_ns[0] == 0
    assert segments.end_ns[-1] == sum(length for _, length in lengths)
    assert np.array_equal(segments.start_ns[1:], segments.end_ns[:-1])


def test_rows_are_the_windows_in_order_without_the_time_between():
    rows = timeline_rows(results.idle_gaps())
    assert rows == [(results.HOST, results.DEVICE, window) for window in range(4)]


def test_a_window_that_was_only_idle_has_a_row():
    gaps = gaps_of([(False, 10)])
    assert isinstance(gaps.gaps, pa.Table)
    assert timeline_rows(gaps) == [ROW]


@pytest.mark.parametrize("cap", [1, 3])
def test_the_names_of_host_operations_are_lost_only_when_joined(cap):
    gaps = results.idle_gaps()
    assert set(row_segments(gaps, ROW, cap).operation) == {""}
    assert "DeserializeSparse" in row_segments(gaps, ROW, 1000).operation
