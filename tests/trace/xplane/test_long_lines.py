"""A long line is read without counting its events first, and some stats are kept on the way: neither changes what is read."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.trace import file_memory
from pipeline_lab.trace.schema import Trace, choose_none
from pipeline_lab.trace.xplane import plane_wire, xspace
from pipeline_lab.trace.xplane.layout import ALL
from pipeline_lab.trace.xplane.stats import EventStats
from tests.support.xspace import chunk, double, number

NAMES = ("asked", "asked otherwise", "not asked")
STATS = ("id", "step", "nowhere")
STAT_NAMES = ((1, "id"), (2, "step"), (3, "id"), (4, ""))
STAT_VALUES = (number(4, 7), number(3, 2**64 - 1), double(2, 0.5), chunk(5, b"9"), chunk(5, b"text"), number(7, 2), b"")


def keep(name: str) -> str | None:
    return {"asked": "id", "asked otherwise": "step"}.get(name)


def stat(key: int, value: bytes) -> bytes:
    return chunk(4, number(1, key) + value)


def event(name: int, start_us: int, *stats: bytes) -> bytes:
    return chunk(4, number(1, name) + number(2, start_us * 10**6) + number(3, 10**6) + b"".join(stats))


COUNTER = chunk(4, number(1, 1) + number(5, 3) + stat(1, number(4, 8)))
"""An event that counts, and has no place in time."""
NUMBERED = [stat(1, number(4, 5)), stat(2, number(4, 6))]
FIELDS = st.one_of(
    st.builds(
        lambda name, start, stats: event(name, start, *stats),
        st.integers(0, len(NAMES) + 1),
        st.integers(0, 9),
        st.lists(st.builds(stat, st.integers(1, 5), st.sampled_from(STAT_VALUES)), max_size=3),
    ),
    st.builds(lambda name, start: event(name, start, *NUMBERED), st.integers(1, 2), st.integers(0, 9)),
    st.builds(lambda order: chunk(4, NUMBERED[order] + number(1, 1) + number(2, 10**6)), st.integers(0, 1)),
    st.just(COUNTER),
    st.sampled_from([chunk(2, b"late"), chunk(11, b"shown"), number(1, 7), number(9, 4), number(3, 5_000)]),
)
LINES = st.lists(st.lists(FIELDS, max_size=70), min_size=1, max_size=3)


def space(lines: list[list[bytes]], shared: bytes = b"") -> bytes:
    """Return a plane of its own, of the same name, for each line: names of later ones come after those of the first."""
    names = b"".join(
        chunk(4, number(1, key) + chunk(2, number(1, key) + chunk(2, name.encode()) + shared))
        for key, name in enumerate(NAMES, 1)
    )
    stats = b"".join(
        chunk(5, number(1, key) + chunk(2, number(1, key) + chunk(2, name.encode()))) for key, name in STAT_NAMES
    )
    head = number(1, 4) + chunk(2, b"python") + number(3, 1_000)
    return b"".join(
        chunk(1, chunk(2, b"/host:CPU") + chunk(3, head + b"".join(fields)) + names + stats) for fields in lines
    )


@pytest.fixture(scope="module")
def read_at_once() -> Callable[..., Trace]:
    """A reader that takes each line for a long one, in few pieces."""

    def read(data: bytes, sampled: int = 2, piece: int = 7, most_in_memory: int = xspace.MOST_IN_MEMORY) -> Trace:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(xspace, "SAMPLED", sampled)
            patch.setattr(xspace, "PIECE", piece)
            patch.setattr(xspace, "MOST_IN_MEMORY", most_in_memory)
            return xspace.read_bytes(np.frombuffer(data, np.uint8), Path("h.xplane.pb"), keep=keep)

    return read


def read_counted(data: bytes) -> Trace:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xspace, "SAMPLED", ALL)
        return xspace.read_bytes(np.frombuffer(data, np.uint8), Path("h.xplane.pb"), keep=choose_none)


def all_of(trace: Trace) -> list[object]:
    """Return everything that can be asked of a trace."""
    told: list[object] = [trace.salvage]
    for plane in trace.planes:
        for line in plane.lines:
            named = [plane.names[index] for index in line.name_index]
            told.append((line.id, line.name, line.start_ns.tolist(), line.duration_ns.tolist(), named))
            for name in (*NAMES, ""):
                rows = np.array([row for row, own in enumerate(named) if own == name], np.int64)
                shuffled = np.random.default_rng(line.count).choice(rows, 2 * len(rows)) if len(rows) else rows
                for chosen in (rows, rows[::-1], shuffled, np.arange(line.count)):
                    for one in STATS:
                        values, known = line.stats.ints(chosen, one)
                        told.append((values.tolist(), known.tolist(), line.stats.texts(chosen, one)))
    return told


@given(lines=LINES)
def test_a_line_that_is_not_counted_reads_as_one_that_is(
    read_at_once: Callable[..., Trace], lines: list[list[bytes]]
) -> None:
    data = space(lines)
    expected = all_of(read_counted(data))
    assert all_of(read_at_once(data)) == expected
    assert all_of(read_at_once(data, sampled=1, piece=1, most_in_memory=9)) == expected


@given(lines=LINES, damage=st.integers(0, 2**32))
def test_damage_in_a_line_that_is_not_counted_is_found_too(
    read_at_once: Callable[..., Trace], lines: list[list[bytes]], damage: int
) -> None:
    data = bytearray(space(lines))
    data[damage % len(data)] ^= 1 << damage % 8
    told = []
    for read in (read_at_once, read_counted):
        try:
            told.append(all_of(read(bytes(data))))
        except xspace.TraceReadError as error:
            told.append([str(error)])
    assert told[0] == told[1]


def test_more_events_than_the_first_ones_let_expect_are_read(read_at_once: Callable[..., Trace]) -> None:
    large, small = event(1, 1, *NUMBERED, stat(3, chunk(5, bytes(100)))), chunk(4, number(1, 3) + number(2, 10**6))
    (line,) = read_at_once(space([[large, large, *[small] * 500, COUNTER, large]])).planes[0].lines
    assert line.count == 503
    assert line.stats.ints(np.array([0, 1, 502]), "id")[0].tolist() == [5, 5, 5]


def test_fewer_events_than_the_first_ones_let_expect_are_no_reason_to_refuse_a_file(
    read_at_once: Callable[..., Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_memory, "SPARE_BYTES", 10_000)
    large = event(1, 1, stat(3, chunk(5, bytes(100))))
    (line,) = read_at_once(space([[*[chunk(4, b"")] * 8, *[large] * 200]]), sampled=8).planes[0].lines
    assert line.count == 208


def test_many_planes_of_one_name_take_no_more_than_their_names(
    read_at_once: Callable[..., Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = read_at_once(space([[event(1, 1, *NUMBERED)]] * 50))
    assert len(trace.planes[0].names) == 50 * len(NAMES)
    monkeypatch.setattr(plane_wire, "find_event_stats", None)
    for line in trace.planes[0].lines:
        assert line.stats.ints(np.array([0]), "id")[0].tolist() == [5]
        assert isinstance(line.stats, EventStats)
        assert line.stats.kept is not None
        assert len(line.stats.kept.chosen.of_name) == len(NAMES)


def test_a_stat_that_is_kept_is_not_looked_for(
    read_at_once: Callable[..., Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [[event(1, start, stat(1, number(4, start))) for start in range(40)]]
    (line,) = read_at_once(space(lines)).planes[0].lines
    monkeypatch.setattr(plane_wire, "find_event_stats", None)
    assert line.stats.ints(np.array([3, 39]), "id")[0].tolist() == [3, 39]
    with pytest.raises(IndexError, match="rows must lie in"):
        line.stats.ints(np.array([40]), "id")


def test_what_the_metadata_says_of_all_events_of_a_name_is_not_passed_over(
    read_at_once: Callable[..., Trace],
) -> None:
    data = space([[event(1, 1), event(1, 2, stat(1, number(4, 3)))]], shared=chunk(5, number(1, 1) + number(4, 77)))
    (line,) = read_at_once(data).planes[0].lines
    assert line.stats.ints(np.array([0, 1]), "id")[0].tolist() == [77, 3]


def test_a_late_timestamp_has_the_line_read_again(read_at_once: Callable[..., Trace]) -> None:
    lines = [[*[event(1, 1)] * 9, number(3, 3_000)]]
    (line,) = read_at_once(space(lines)).planes[0].lines
    assert line.start_ns.tolist() == [4_000] * 9
