"""Cut a capture down to the events around its middle, so that a fuzzer reads many a second that have a real one's shape.

What lasts over the cut (steps, waits) stays whole; names and stats that no event left uses are dropped.
"""

import json
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Any

from pipeline_lab.trace.legacy.message import CHUNK, VARINT, MessageField, read_fields, signed
from tests.support.xspace import chunk, number

EVENTS = 24
"""Events that begin within the cut."""


@dataclass(frozen=True)
class Window:
    """A stretch of time, in the unit of the file."""

    begin: float
    end: float

    def meets(self, start: float, duration: float) -> bool:
        return start <= self.end and start + duration >= self.begin


def cut_space(space: bytes) -> bytes:
    """Cut an XSpace."""
    planes = [space[part.begin : part.end] for part in _chunks(space, 1)]
    window = middle(start for plane in planes for line in _lines(plane) for start, _ in _times(line))
    rest = b"".join(chunk(4, space[part.begin : part.end]) for part in _chunks(space, 4))
    return b"".join(chunk(1, _cut_plane(plane, window)) for plane in planes) + rest


def cut_json(text: bytes) -> bytes:
    """Cut a Chrome trace."""
    document = json.loads(text)
    events = [event for event in document["traceEvents"] if event]
    window = middle(event["ts"] for event in events if "ts" in event)
    left = [event for event in events if "ts" in event and window.meets(event["ts"], event.get("dur", 0))]
    used = {(event["pid"], event["tid"]) for event in left}
    names = [event for event in events if event["ph"] == "M" and _names_one_of(event, used)]
    return json.dumps({**document, "traceEvents": [*names, *left, {}]}).encode()


def middle(starts: Iterable[float]) -> Window:
    """Return the stretch in which the `EVENTS` in the middle begin."""
    ordered = sorted(starts)
    first = max(0, (len(ordered) - EVENTS) // 2)
    some = ordered[first : first + EVENTS] or [0.0]
    return Window(some[0], some[-1])


def _names_one_of(event: dict[str, Any], used: Set[tuple[int, int]]) -> bool:
    place = event["pid"], event.get("tid")
    return place in used or (event["name"].startswith("process") and any(pid == place[0] for pid, _ in used))


def _cut_plane(plane: bytes, window: Window) -> bytes:
    lines = [_cut_line(line, window) for line in _lines(plane)]
    events = [line[part.begin : part.end] for line in lines for part in _chunks(line, 4)]
    names = {_number(event, 1) for event in events}
    kept = [plane[part.begin : part.end] for part in _chunks(plane, 4)]
    kept = [entry for entry in kept if _number(entry, 1) in names]
    stats = {key for event in events for key in _stats_used(event, 4)} | set(_stats_used(plane, 6))
    for entry in kept:
        stats |= {key for part in _chunks(entry, 2) for key in _stats_used(entry[part.begin : part.end], 5)}
    out = b""
    for part in read_fields(plane, 0, len(plane)):
        content = plane[part.begin : part.end]
        if part.wire != CHUNK or part.number in (2, 6) or (part.number == 5 and _number(content, 1) in stats):
            out += _whole(plane, part)
    return out + b"".join(chunk(3, line) for line in lines if line) + b"".join(chunk(4, entry) for entry in kept)


def _cut_line(line: bytes, window: Window) -> bytes:
    """Return the line with what is left of its events; nothing if that is none."""
    events = list(_chunks(line, 4))
    left = [part for part, time in zip(events, _times(line), strict=True) if window.meets(*time)]
    head = b"".join(_whole(line, part) for part in read_fields(line, 0, len(line)) if part.number != 4)
    return head + b"".join(_whole(line, part) for part in left) if left else b""


def _times(line: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and duration (ps since the session began) of a line's events."""
    base_ps = _number(line, 3) * 1000
    for part in _chunks(line, 4):
        event = line[part.begin : part.end]
        yield base_ps + _number(event, 2), _number(event, 3)


def _stats_used(message: bytes, field: int) -> Iterator[int]:
    """Yield the ids of a message's stats, and of the texts that they refer to."""
    for part in _chunks(message, field):
        stat = message[part.begin : part.end]
        yield from (_number(stat, 1), _number(stat, 7))


def _lines(plane: bytes) -> Iterator[bytes]:
    return (plane[part.begin : part.end] for part in _chunks(plane, 3))


def _chunks(message: bytes, field: int) -> Iterator[MessageField]:
    return (part for part in read_fields(message, 0, len(message)) if part.number == field and part.wire == CHUNK)


def _number(message: bytes, field: int) -> int:
    """Return a number of a message, 0 if it has none."""
    found = 0
    for part in read_fields(message, 0, len(message)):
        if part.number == field and part.wire == VARINT:
            found = signed(part.value)
    return found


def _whole(message: bytes, part: MessageField) -> bytes:
    """Return a field with its tag, as it was written by a program that writes no number longer than need be."""
    content = message[part.begin : part.end]
    if part.wire == CHUNK:
        return chunk(part.number, content)
    return number(part.number, part.value) if part.wire == VARINT else b""
