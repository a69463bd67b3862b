"""Events are read alike whichever way their bytes go: as nearly all are written, or field by field."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline_lab.trace.wire import VARINT_ROOM
from pipeline_lab.trace.xplane.plane_wire import find_event_stat, find_stat, read_event, read_usual_event
from tests.support.xspace import chunk, double, number

NUMBERS = st.one_of(st.integers(0, 300), st.integers(0, 2**64 - 1))
SCALARS = st.builds(number, st.sampled_from([1, 2, 3, 5, 6]), NUMBERS)
STATS = st.builds(
    lambda content: chunk(4, content), st.one_of(st.binary(max_size=12), st.binary(min_size=120, max_size=140))
)
USUAL = st.tuples(
    *(st.builds(number, st.just(field), NUMBERS) for field in (1, 2, 3)), st.lists(STATS, max_size=3).map(b"".join)
).map(b"".join)
EVENTS = st.one_of(USUAL, st.lists(st.one_of(SCALARS, STATS), max_size=6).map(b"".join), st.binary(max_size=30))


@given(event=EVENTS, after=st.binary(min_size=VARINT_ROOM, max_size=VARINT_ROOM))
@example(event=b"", after=number(1, 3) + number(2, 5) + bytes(4))
@example(event=number(1, 3), after=number(2, 5) + bytes(6))
@example(event=number(1, 3) + number(2, 5), after=number(3, 5) + bytes(6))
@example(event=number(1, 3) + number(2, 5) + number(5, 1), after=bytes(8))
@example(event=number(1, 3) + number(2, 5) + b"\x22\x05ab", after=b"cde" + bytes(5))
def test_what_is_read_at_once_is_what_its_fields_say(event: bytes, after: bytes) -> None:
    data = np.frombuffer(event + after, np.uint8)
    *values, end = read_usual_event(data, 0, len(event))
    if end == len(event):
        assert (*values, True, end) == read_event(data, 0, len(event))


def test_what_profilers_write_is_read_at_once() -> None:
    event = number(1, 300) + number(2, 7 * 10**12) + number(3, 2**56 - 1) + chunk(4, b"stat") + chunk(4, bytes(130))
    data = np.frombuffer(event + bytes(VARINT_ROOM), np.uint8)
    assert read_usual_event(data, 0, len(event)) == (300, 7 * 10**12, 2**56 - 1, len(event))


VALUES = st.one_of(
    st.builds(number, st.sampled_from([3, 4, 7]), NUMBERS),
    st.builds(double, st.just(2), st.floats(allow_nan=False)),
    st.builds(chunk, st.sampled_from([5, 6]), st.binary(max_size=140)),
    st.binary(max_size=4),
)
OWN_STATS = st.builds(lambda key, value: chunk(4, number(1, key) + value), st.integers(0, 400), VALUES)
UNLIKE = st.builds(lambda key, value: chunk(4, value + number(1, key)), st.integers(0, 3), VALUES)


@given(
    head=st.lists(SCALARS, max_size=3).map(b"".join),
    stats=st.lists(st.one_of(OWN_STATS, UNLIKE, STATS), max_size=5).map(b"".join),
    tail=st.one_of(st.just(b""), SCALARS),
    wanted=st.lists(st.integers(0, 3), min_size=1, max_size=2),
    room=st.integers(0, 2 * VARINT_ROOM),
)
def test_a_stat_is_found_alike(head: bytes, stats: bytes, tail: bytes, wanted: list[int], room: int) -> None:
    event = head + stats + tail
    data, ids = np.frombuffer(event + bytes(room), np.uint8), np.array(wanted, np.int64)
    assert find_event_stat(data, 0, len(event), ids) == find_stat(data, 0, len(event), 4, ids)
