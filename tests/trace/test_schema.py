"""The events of some names on a line, however they lie."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.analysis.activity.event_sets import union_of_named
from pipeline_lab.analysis.activity.intervals import union
from pipeline_lab.trace.schema import Line, index_type
from tests.support.traces import Stats

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


@given(line=lines(), names=masks)
def test_events_are_found_by_their_names(line: Line, names: np.ndarray) -> None:
    wanted = np.flatnonzero(names[line.name_index])
    assert line.rows_named(names).tolist() == wanted.tolist()
    assert line.count_named(names) == len(wanted)
    assert line.names_used.counts.tolist() == np.bincount(line.name_index).tolist()
    assert all(line.name_index[: line.names_used.first[name]].tolist().count(name) == 0 for name in line.name_index)


@given(line=lines().filter(lambda line: line.count > 0))
def test_a_line_reaches_from_its_first_start_to_its_last_end(line: Line) -> None:
    ends, lengths = line.end_ns, line.duration_ns
    expected = (line.start_ns.min(), line.start_ns.max(), ends.max(), lengths.min(), lengths.max())
    assert line.reach == expected


@given(line=lines(), names=masks)
def test_their_time_is_that_of_the_events_one_by_one(line: Line, names: np.ndarray) -> None:
    rows = np.flatnonzero(names[line.name_index])
    expected = union(line.start_ns[rows], line.end_ns[rows])
    assert union_of_named(line, names).tolist() == expected.tolist()


@pytest.mark.parametrize(("count", "kind"), [(0, np.int16), (32_767, np.int16), (32_768, np.int32)])
def test_indices_have_room_for_one_name_more_and_for_none(count: int, kind: type) -> None:
    assert index_type(count) is kind
    assert np.array([-1, count], kind).tolist() == [-1, count]
