"""The collapsed axis, the numbers of steps, and the sums of a stretch of time."""

import base64
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.analysis.activity.intervals import length_within
from pipeline_lab.analysis.causes import GapCause, Work
from pipeline_lab.analysis.timeline.index import Group, Index
from pipeline_lab.analysis.timeline.lanes import CLASS_NUMBER, CLASSES, LaneKind
from pipeline_lab.analysis.timeline.range_sums import sum_range
from pipeline_lab.analysis.timeline.shown_axis import TO_SCALE, ShownAxis, collapse_unrecorded
from pipeline_lab.analysis.timeline.view import View, cut, number_steps
from pipeline_lab.analysis.timeline.writing import Lane
from tests.support.timelines import MS, make_timeline


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return make_timeline(tmp_path_factory.mktemp("timeline"))[0]


def make_index(*lanes: tuple[LaneKind, list[tuple[str, int, int]]]) -> Index:
    """Make an index of lanes with events as (class, start, end)."""
    groups = {}
    for number, (_, events) in enumerate(lanes):
        groups[number, 0] = tuple(
            Group(
                number,
                0,
                CLASS_NUMBER[name],
                np.array([start for one, start, _ in events if one == name]),
                np.cumsum([0, *(end - start for one, start, end in events if one == name)]),
                np.array([at for at, (one, *_) in enumerate(events) if one == name], np.uint32),
            )
            for name in dict.fromkeys(one for one, *_ in events)
        )
    most = max(len(events) for _, events in lanes)
    labels = tuple(f"Step {number}" for number in range(most))
    ends = [end for _, events in lanes for *_, end in events]
    made = tuple(Lane(kind, "", "host", "", kind.value) for kind, _ in lanes)
    return Index(made, groups, labels, labels, (1,) * most, (1,) * most, 0, max(ends), {})


WINDOWS = [("window", 0, 100), ("capture_gap", 100, 1100), ("window", 1100, 1200)]


def test_time_without_profiler_takes_hardly_any_room():
    axis = collapse_unrecorded(make_index((LaneKind.WINDOWS, WINDOWS)))
    assert axis.breaks.tolist() == [[100, 1000]]
    assert axis.room_ns == 3, "1.5 % of the 200 that were recorded"
    assert axis.drawn([0, 50, 100, 1100, 1150]).tolist() == [0, 50, 100, 103, 153]
    assert axis.times([0, 100, 103, 153]).tolist() == [0, 100, 1100, 1150]


def test_a_run_recorded_in_one_piece_is_drawn_to_scale(index):
    assert collapse_unrecorded(index) is TO_SCALE
    assert TO_SCALE.drawn([-5, 0, 7]).tolist() == [-5, 0, 7]


def test_many_windows_leave_most_of_the_room_to_what_was_recorded():
    windows = [
        one
        for at in range(0, 200_000, 1000)
        for one in (("window", at, at + 100), ("capture_gap", at + 100, at + 1000))
    ]
    axis = collapse_unrecorded(make_index((LaneKind.WINDOWS, windows)))
    assert len(axis.breaks) == 200
    assert axis.room_ns * len(axis.breaks) <= 0.1 * 200 * 100


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(1, 10**12), st.integers(11, 10**12)), max_size=8),
    st.lists(st.integers(-(10**13), 10**13)),
)
def test_every_moment_is_found_where_it_is_drawn_and_the_order_stays(pieces, moments):
    gaps, at = [], 0
    for recorded, off in pieces:
        gaps.append((at + recorded, off))
        at += recorded + off
    axis = ShownAxis(np.array(gaps, np.int64).reshape(-1, 2), 10)
    outside = [one for one in sorted(moments) if not any(start < one < start + length for start, length in gaps)]
    drawn = axis.drawn(outside)
    assert (np.diff(drawn) >= 0).all()
    assert np.allclose(axis.times(drawn), outside, rtol=0, atol=1)


def test_a_collapsed_view_gives_its_pixels_to_what_was_recorded(monkeypatch):
    monkeypatch.setattr("pipeline_lab.analysis.timeline.view.SINGLE_EVENTS", 0)
    found = make_index((LaneKind.WINDOWS, WINDOWS), (LaneKind.DEVICE, [("busy", 0, 100), ("input_wait", 1100, 1200)]))
    axis = ShownAxis(np.array([[100, 1000]]), 50)
    cut_out = cut(found, View(0, 1200, 5, ((1, 0),), axis=axis))["rows"][0]["cells"]
    classes = [CLASSES[cell // 8] if cell else "" for cell in base64.b64decode(cut_out)]
    assert classes == ["busy", "busy", "", "input_wait", "input_wait"]


def steps_of(count: int, pixels: int) -> list[str]:
    steps = make_index((LaneKind.STEPS, [("step", 10 * at, 10 * at + 10) for at in range(count)]))
    return [number for *_, number in number_steps(steps, View(5, 10 * count, pixels, ()))]


def test_steps_are_numbered_as_far_as_there_is_room():
    assert steps_of(4, 400) == ["0", "1", "2", "3"]
    assert steps_of(1000, 480) == ["0", "100", "200", "300", "400", "500", "600", "700", "800", "900"]


def test_a_step_is_numbered_where_it_starts(index):
    assert number_steps(index, View(20 * MS, 150 * MS, 800, ())) == [
        (-20 * MS, 100 * MS, "0"),
        (80 * MS, 100 * MS, "1"),
    ]


def by_class(sums) -> dict[str, tuple[int, int]]:
    return {CLASSES[one.event_class]: (one.time_ns // MS, one.events) for one in sums}


def test_a_range_is_divided_by_cause_and_its_ends_are_cut(index):
    sums = sum_range(index, (20 * MS, 120 * MS))
    found = by_class(sums.by_cause)
    assert sum(time for time, _ in found.values()) == 100 == sums.recorded_ns // MS
    assert found[Work.BUSY] == (40, 1), "AddV2 from 50 to 90"
    assert found[GapCause.INPUT_WAIT] == (60, 2), "the gaps around it, 20 to 50 and 90 to 120"
    assert sum(time for time, _ in by_class(sums.waits).values()) == 40, "20 of each wait"
    assert sums.steps == ("0", "1", 2)


def test_a_range_of_several_devices_adds_them_up_and_leaves_out_what_was_not_recorded():
    device = [("busy", 0, 60 * MS), ("python", 60 * MS, 100 * MS), ("capture_gap", 100 * MS, 1100 * MS)]
    windows = [(name, start * MS, end * MS) for name, start, end in WINDOWS]
    found = make_index((LaneKind.WINDOWS, windows), (LaneKind.DEVICE, device), (LaneKind.DEVICE, device))
    sums = sum_range(found, (0, 600 * MS))
    assert by_class(sums.by_cause) == {"busy": (120, 2), "python": (80, 2)}
    assert (sums.devices, sums.recorded_ns, sums.span_ns, sums.steps) == (2, 100 * MS, 600 * MS, None)


SPANS = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 20)), min_size=1, max_size=30)


@pytest.mark.slow
@given(SPANS, st.integers(0, 300), st.integers(1, 300))
def test_sums_are_those_of_the_intervals_one_by_one(pieces, begin, length):
    ends = np.cumsum([part for piece in pieces for part in piece])
    spans = np.stack((ends[::2] - [busy for busy, _ in pieces], ends[::2]), axis=1)
    found = make_index((LaneKind.DEVICE, [("busy", *span) for span in spans.tolist()]))
    sums = sum_range(found, (begin, begin + length)).by_cause
    expected = int(length_within(spans, np.array([[begin, begin + length]]))[0])
    assert sum(one.time_ns for one in sums) == expected


def test_nothing_of_a_range_outside_of_the_run(index):
    sums = sum_range(replace(index, groups={}), (0, MS))
    assert (sums.by_cause, sums.waits, sums.steps) == ((), (), None)
