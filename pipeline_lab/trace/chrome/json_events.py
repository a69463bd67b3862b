"""Yield the events of a Chrome trace one by one, over damage if need be.

A compiled search finds the objects of the array. They are parsed some hundred at a time, so that memory stays a small multiple of the file.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from pipeline_lab.trace.compiled import compiled
from pipeline_lab.trace.schema import IntArray
from pipeline_lab.trace.wire import DAMAGED, ByteArray, Int64Array

QUOTE, BACKSLASH, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET = 0x22, 0x5C, 0x7B, 0x7D, 0x5B, 0x5D
MAX_OBJECT = 1 << 20
"""Bytes that one event may take."""

# What `find_objects` keeps between calls: where to go on, bytes looked at in vain that it may still spend, bytes lost,
# and where the first of them stands (-1 if none is).
AT, PATIENCE, LOST, FIRST_LOST, STATE_COLUMNS = range(5)


@compiled
def object_end(data: ByteArray, at: int, stop: int) -> int:
    """Return the position behind the object or array that begins at ``at``; `DAMAGED` if it does not end."""
    depth, in_string = 0, False
    while at < stop:
        byte = data[at]
        if byte == BACKSLASH and in_string:
            at += 1
        elif byte == QUOTE:
            in_string = not in_string
        elif in_string:
            pass
        elif byte in (OPEN_BRACE, OPEN_BRACKET):
            depth += 1
        elif byte in (CLOSE_BRACE, CLOSE_BRACKET):
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return DAMAGED


@compiled
def find_objects(data: ByteArray, bounds: Int64Array, state: Int64Array) -> int:
    """Find the next objects that lie side by side.

    An object that does not end is damage: the search goes on behind its first brace, as far as patience lasts.

    Args:
        data: The file.
        bounds: Filled with begin and end of each object, shape (n, 2).
        state: Where to go on, shape (STATE_COLUMNS,); changed.

    Returns:
        How many were found; fewer than ``len(bounds)`` at the end of the file.
    """
    at, stop, row = state[AT], len(data), 0
    broken = -1
    while at < stop and row < len(bounds) and state[PATIENCE] > 0:
        if data[at] != OPEN_BRACE:
            at += 1
            continue
        limit = min(stop, at + MAX_OBJECT)
        end = object_end(data, at, limit)
        if end == DAMAGED:
            state[PATIENCE] -= limit - at
            broken = at if broken < 0 else broken
            at += 1
            continue
        if broken >= 0:
            note_lost(state, broken, at)
            broken = -1
        bounds[row, 0], bounds[row, 1] = at, end
        row += 1
        at = end
    if state[PATIENCE] <= 0:
        broken, at = at if broken < 0 else broken, stop
    if broken >= 0:
        note_lost(state, broken, at)
    state[AT] = at
    return row


@compiled
def note_lost(state: Int64Array, begin: int, end: int) -> None:
    """Add ``[begin, end)`` to the bytes lost."""
    state[LOST] += end - begin
    if state[FIRST_LOST] < 0:
        state[FIRST_LOST] = begin


BLOCK = 16_384
BATCH = 256
"""Events parsed in one go."""
HEAD = 1 << 16
LOOKS_PER_BYTE = 16
"""Bytes that may be looked at per byte of the file in search of events behind damage."""

_DECODER = json.JSONDecoder(strict=False)
_FIRST_HALF, _SECOND_HALF = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_LONE_HALF = re.compile(f"{_FIRST_HALF}(?!{_SECOND_HALF})|(?<!{_FIRST_HALF}){_SECOND_HALF}")
"""Half of a character beyond 16 bits, as where a writer cut a name: no text that can be written down."""


class JsonEvents:
    """The events of a file.

    Args:
        data: The file.
        begin: Where their array begins.
    """

    def __init__(self, data: ByteArray, begin: int) -> None:
        self._data = data
        self._state = np.zeros(STATE_COLUMNS, np.int64)
        self._state[:] = (begin, HEAD + LOOKS_PER_BYTE * len(data), 0, -1)

    @property
    def bytes_lost(self) -> int:
        """Bytes met so far that are no events."""
        return int(self._state[LOST])

    @property
    def first_lost(self) -> int:
        """Where the first of them lies, -1 without any."""
        return int(self._state[FIRST_LOST])

    def __iter__(self) -> Iterator[tuple[dict[str, Any], int]]:
        """Yield each event and its position."""
        bounds = np.zeros((BLOCK, 2), np.int64)
        while count := find_objects(self._data, bounds, self._state):
            for batch in _batches(bounds[:count]):
                events = _parse_batch(self._data, batch)
                for event, (at, end) in zip(events, batch.tolist(), strict=True):
                    if event is None:
                        self._go_on_inside(at, end)
                        break
                    yield event, at
                else:
                    continue
                break

    def _go_on_inside(self, at: int, end: int) -> None:
        """Search again behind the first brace of what is no JSON: a lost quote joins events that are sound."""
        self._state[AT] = at + 1
        self._state[PATIENCE] -= end - at
        note_lost(self._state, at, at + 1)


def parse(data: ByteArray, begin: int, end: int) -> dict[str, Any] | None:
    """Return the object at ``[begin, end)``, None if there is none."""
    value = _decode(data[begin:end].tobytes())
    return value if isinstance(value, dict) else None


def _batches(bounds: IntArray) -> Iterator[IntArray]:
    """Divide events into runs that are parsed together, short ones so that few are in memory at a time."""
    first = 0
    while first < len(bounds):
        near = int(np.searchsorted(bounds[:, 1], bounds[first, 0] + MAX_OBJECT))
        end = max(first + 1, min(first + BATCH, near))
        yield bounds[first:end]
        first = end


def _parse_batch(data: ByteArray, bounds: IntArray) -> Iterable[dict[str, Any] | None]:
    """Parse events in one go, and one by one, as they are asked for, where that fails."""
    begin, end = int(bounds[0, 0]), int(bounds[-1, 1])
    block = data[begin:end].tobytes()
    array_of_them = b"[%b]" % b",".join([block[at - begin : stop - begin] for at, stop in bounds.tolist()])
    events = _decode(array_of_them)
    if isinstance(events, list) and len(events) == len(bounds) and all(isinstance(event, dict) for event in events):
        return events
    return (parse(data, at, stop) for at, stop in bounds.tolist())


def _decode(content: bytes) -> object:
    """Return the value of a JSON text, None if it is none; control characters inside strings are let through."""
    text = content.decode("utf-8", "replace")
    try:
        return _DECODER.decode(_LONE_HALF.sub(r"\\ufffd", text) if "\\u" in text else text)
    except (ValueError, RecursionError):
        return None
