"""Events are read alike whichever way their bytes go: as nearly all are written, or field by field."""

import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_lab.trace.wire import VARINT_ROOM
from pipeline_lab.trace.xplane.plane_wire import find_event_stat, find_stat, read_any_event, read_usual_event
from tests.support.machines import on_x86_linux
from tests.support.xspace import chunk, double, number

FIELDS = (
    number(1, 3),
    number(1, 2**64 - 1),
    number(2, 5),
    number(3, 700),
    number(5, 1),
    chunk(4, b""),
    chunk(4, number(1, 2) + number(4, 9)),
    chunk(4, bytes(130)),
    b"\x22\x05ab",
    b"\x22\xf5\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # a length of -11, which leads back to where it stands
    b"\x22\xf4\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x08",
    b"\x80",
)
"""What events are made of, and what of them is left where they are damaged."""
STATS = (
    chunk(4, number(1, 2) + number(4, 9)),
    chunk(4, number(1, 2) + number(3, 2**64 - 1)),
    chunk(4, number(4, 9) + number(1, 2)),
    chunk(4, number(1, 2) + number(4, 9) + number(4, 10)),
    chunk(4, number(1, 2) + double(2, 0.5)),
    chunk(4, number(1, 2) + chunk(5, b"abc")),
    chunk(4, number(1, 2) + chunk(6, bytes(130))),
    chunk(4, number(1, 2) + b"\x20"),
    chunk(4, number(1, 2)),
    chunk(4, number(1, 0) + number(7, 5)),
    chunk(4, number(1, 300) + number(4, 5)),
    chunk(4, b"\x08"),
    chunk(4, b"\x08\x80\x80"),
    chunk(4, b""),
    b"\x22\x7f\x08\x02\x20\x05",
    b"\x22\x04\x08\x02\x20",
    number(1, 2),
    number(5, 1),
)
AFTER = (bytes(VARINT_ROOM), number(2, 5) + bytes(VARINT_ROOM), number(3, 5) * VARINT_ROOM, b"\x80" * VARINT_ROOM)


def made_of(parts: tuple[bytes, ...], most: int) -> Iterator[bytes]:
    """Yield all events of so many parts or fewer."""
    for count in range(most + 1):
        yield from map(b"".join, product(parts, repeat=count))


@pytest.mark.parametrize("after", AFTER, ids=["zeros", "an offset", "durations", "no end"])
def test_what_is_read_at_once_is_what_its_fields_say(after: bytes) -> None:
    at_once = 0
    for event in made_of(FIELDS, 4):
        data = np.frombuffer(event + after, np.uint8)
        *values, stats, end = read_usual_event(data, 0, len(event))
        if end == len(event):
            assert (*values, True, end) == read_any_event(data, 0, len(event)), event.hex()
            ids = np.array([2, 3], np.int64)
            assert find_stat(data, stats, end, 4, ids) == find_stat(data, 0, end, 4, ids), event.hex()
            at_once += 1
    assert at_once > 40


def test_what_profilers_write_is_read_at_once() -> None:
    times, stats = (
        number(1, 300) + number(2, 7 * 10**12) + number(3, 2**56 - 1),
        chunk(4, b"stat") + chunk(4, bytes(130)),
    )
    data = np.frombuffer(times + stats + bytes(VARINT_ROOM), np.uint8)
    end = len(times + stats)
    assert read_usual_event(data, 0, end) == (300, 7 * 10**12, 2**56 - 1, len(times), end)


@pytest.mark.parametrize("room", [0, VARINT_ROOM])
@pytest.mark.parametrize("wanted", [(2,), (0,), (300, 2)])
def test_a_stat_is_found_alike(wanted: tuple[int, ...], room: int) -> None:
    ids = np.array(wanted, np.int64)
    for stats in made_of(STATS, 3):
        event = number(1, 3) + number(2, 5) + stats
        data = np.frombuffer(event + bytes(room), np.uint8)
        assert find_event_stat(data, 0, len(event), ids) == find_stat(data, 0, len(event), 4, ids), event.hex()


@given(event=st.binary(max_size=40), after=st.binary(min_size=VARINT_ROOM, max_size=VARINT_ROOM))
def test_no_bytes_are_read_otherwise(event: bytes, after: bytes) -> None:
    data = np.frombuffer(event + after, np.uint8)
    *values, _, end = read_usual_event(data, 0, len(event))
    if end == len(event):
        assert (*values, True, end) == read_any_event(data, 0, len(event))


AT_THE_END = """
import ctypes, mmap, sys
import numpy as np
from pipeline_lab.trace.xplane.plane_wire import LINE_COLUMNS, fill_events, find_event_stat, read_line
from tests.support.xspace import chunk
from tests.trace.xplane.test_usual_events import FIELDS, STATS, made_of
memory = mmap.mmap(-1, 2 * mmap.PAGESIZE)
page = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + mmap.PAGESIZE
assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(page), mmap.PAGESIZE, 0) == 0  # whoever reads on crashes
whole = np.frombuffer(memory, np.uint8, mmap.PAGESIZE)
table, ids, room = np.arange(8, dtype=np.int32), np.arange(8), [np.zeros(8, kind) for kind in (np.int64, np.int64, np.int16)]
keep, kept = (0, np.zeros(8, np.int8), np.array([2]), np.array([0, 1])), (np.zeros(8, np.int32), np.zeros(8, np.int64))
for event in [*made_of(FIELDS, 2), *made_of(STATS, 2)]:
    for line in (chunk(4, event), chunk(4, event) + b"\\x08" + b"\\x80" * 9, chunk(4, event) + b"\\x80" * 9):
        data = whole[len(whole) - len(line):]
        data[:] = np.frombuffer(line, np.uint8)
        stop = len(chunk(4, event))
        read_line(data, 0, stop, 9, np.zeros(LINE_COLUMNS, np.int64))
        head, offsets = np.zeros(LINE_COLUMNS, np.int64), np.zeros(8, np.int64)
        fill_events(data, (0, stop), 0, (table, ids, table), tuple(room), 0, (offsets, 16), head, keep, kept)
        find_event_stat(data, stop - len(event), stop, np.array([2]))
"""


@pytest.mark.skipif(not on_x86_linux(), reason="mprotect of glibc is called as Linux has it")
def test_nothing_beyond_the_file_is_read() -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", AT_THE_END], cwd=root, check=False, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
