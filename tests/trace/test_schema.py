"""The events of some names on a line, however they lie."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.analysis.activity.event_sets import union_of_named
from pipeline_lab.analysis.activity.intervals import union
from pipeline_lab.trace.schema import Line, MadeOnce, index_type
from tests.support.traces import Stats, host, line, trace

NAMES = 5
masks = st.lists(st.booleans(), min_size=NAMES, max_size=NAMES).map(np.array)


@st.composite
def lines(draw: st.DrawFn) -> Line:
    """Draw a line, in the order of time or not; some events have no length."""
    events = draw(st.lists(st.tuples(st.integers(-9, 60), st.integers(0, 9), st.integers(0, NAMES - 1)), max_size=30))
    if draw(st.booleans()):
        events.sort()
    start, duration, name = np.array(events, np.int64).reshape(-1, 3).T
    return Line(1, "python", start.copy(), duration.copy(), name.astype(index_type(NAMES)), Stats([]))


@given(one=lines(), names=masks)
def test_events_are_found_by_their_names(one: Line, names: np.ndarray) -> None:
    wanted = np.flatnonzero(names[one.name_index])
    assert one.rows_named(names).tolist() == wanted.tolist()
    assert one.count_named(names) == len(wanted)
    index, first, counts = np.unique(one.name_index, return_index=True, return_counts=True)
    assert [each.tolist() for each in one.names_used] == [index.tolist(), counts.tolist(), first.tolist()]


@given(one=lines().filter(lambda one: one.count > 0))
def test_a_line_reaches_from_its_first_start_to_its_last_end(one: Line) -> None:
    ends, lengths = one.end_ns, one.duration_ns
    expected = (one.start_ns.min(), one.start_ns.max(), ends.max(), lengths.min(), lengths.max())
    assert one.reach == expected


@given(one=lines(), names=masks)
def test_their_time_is_that_of_the_events_one_by_one(one: Line, names: np.ndarray) -> None:
    rows = np.flatnonzero(names[one.name_index])
    expected = union(one.start_ns[rows], one.end_ns[rows])
    assert union_of_named(one, names).tolist() == expected.tolist()


def test_a_line_without_events_reaches_nowhere() -> None:
    with pytest.raises(ValueError, match="no events"):
        _ = trace(host(line("python"))).planes[0].lines[0].reach


def test_what_is_kept_of_a_line_does_not_grow_with_the_names_of_its_plane() -> None:
    none = np.zeros(1, np.int64)
    one = Line(1, "python", none, none, np.array([30_000], np.int16), Stats([]))
    assert [each.tolist() for each in one.names_used] == [[30_000], [1], [0]]


def test_lines_are_looked_at_side_by_side() -> None:
    together = threading.Barrier(2, timeout=20)

    class Slow:
        @MadeOnce
        def value(self) -> int:
            return together.wait()

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(lambda one: one.value, [Slow(), Slow()])) == [0, 1]


@pytest.mark.parametrize(("count", "kind"), [(0, np.int16), (32_767, np.int16), (32_768, np.int32)])
def test_indices_have_room_for_one_name_more_and_for_none(count: int, kind: type) -> None:
    assert index_type(count) is kind
    assert np.array([-1, count], kind).tolist() == [-1, count]
