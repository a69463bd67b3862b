"""Yield the events of a Chrome trace one by one, over damage if need be.

They are parsed some hundred at a time, so that memory stays a small multiple of the file.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from pipeline_lab.trace import json_scan
from pipeline_lab.trace.schema import IntArray
from pipeline_lab.trace.wire import ByteArray

BLOCK = 16_384
BATCH = 256
"""Events parsed in one go."""
HEAD = 1 << 16
PATIENCE = 16
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
        self._state = np.zeros(json_scan.STATE_COLUMNS, np.int64)
        self._state[:] = (begin, HEAD + PATIENCE * len(data), 0, -1)

    @property
    def bytes_lost(self) -> int:
        """Bytes met so far that are no events."""
        return int(self._state[json_scan.LOST])

    @property
    def first_lost(self) -> int:
        """Where the first of them lies, -1 without any."""
        return int(self._state[json_scan.FIRST_LOST])

    def __iter__(self) -> Iterator[tuple[dict[str, Any], int]]:
        """Yield each event and its position."""
        bounds = np.zeros((BLOCK, 2), np.int64)
        while count := json_scan.find_objects(self._data, bounds, self._state):
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
        self._state[json_scan.AT] = at + 1
        self._state[json_scan.PATIENCE] -= end - at
        json_scan.note_lost(self._state, at, at + 1)


def parse(data: ByteArray, begin: int, end: int) -> dict[str, Any] | None:
    """Return the object at ``[begin, end)``, None if there is none."""
    value = _decode(data[begin:end].tobytes())
    return value if isinstance(value, dict) else None


def _batches(bounds: IntArray) -> Iterator[IntArray]:
    """Divide events into runs that are parsed together, short ones so that few are in memory at a time."""
    first = 0
    while first < len(bounds):
        near = int(np.searchsorted(bounds[:, 1], bounds[first, 0] + json_scan.MAX_OBJECT))
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
