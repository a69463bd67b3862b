"""Grow a recorded capture to any size: the same threads and names, with times and step numbers that go on.

    python -m benchmarks.trace.grow OUTPUT --megabytes 295

The capture comes from `tests/data`. Every repetition lies behind the one before on the same lines, its step, iteration
and element numbers count on, and what does not fit into 2 GiB of protobuf is written all the same.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pipeline_lab.trace.legacy.message import CHUNK, VARINT, MessageField, read_fields, read_text, signed
from tests.support.xspace import chunk, number, varint

RECORDED = Path(__file__).parents[2] / "tests" / "data" / "small_pipeline.xplane.pb"
COUNTING = {"step_num": 6, "iter_num": 6, "element_id": 24, "correlation_id": 10_000}
"""Stats that count on, and by how much per repetition; the last joins the work of a GPU to its launch."""
BLOCK = 256


@dataclass(frozen=True)
class Event:
    """One event as pieces that repeat, and the numbers between them that grow.

    Attributes:
        head: Encoded metadata id.
        offset_ps: Its place in the first repetition.
        tail: Encoded duration and stats; a counting stat is its encoded head, its value and its step.
    """

    head: bytes
    offset_ps: int
    tail: tuple[bytes | tuple[bytes, int, int], ...]

    def encode(self, repetition: int, span_ps: int) -> bytes:
        body = self.head + number(2, self.offset_ps + repetition * span_ps)
        for piece in self.tail:
            if isinstance(piece, bytes):
                body += piece
            else:
                head, value, step = piece
                body += chunk(4, head + varint(value + repetition * step))
        return chunk(4, body)


def grow(source: bytes, output: Path, size_bytes: int) -> int:
    """Write ``source`` grown to about ``size_bytes``; return the number of events."""
    repetitions = max(1, round(size_bytes / _line_bytes(source)))
    events = 0
    with output.open("wb") as out:
        for field in read_fields(source, 0, len(source)):
            content = source[field.begin : field.end]
            if field.number == 1:
                plane, count = _grow_plane(content, repetitions)
                events += count
                _write_chunk(out, 1, plane)
            else:
                out.write(chunk(field.number, content))
    return events


def _line_bytes(source: bytes) -> int:
    return sum(
        line.end - line.begin for plane in _chunks(source, 1) for line in _chunks(source[: plane.end], 3, plane.begin)
    )


def _write_chunk(out: BinaryIO, field: int, pieces: list[bytes]) -> None:
    out.write(varint(field << 3 | 2) + varint(sum(map(len, pieces))))
    out.writelines(pieces)


def _grow_plane(plane: bytes, repetitions: int) -> tuple[list[bytes], int]:
    counting = dict(_counting_stats(plane))
    pieces: list[bytes] = []
    total = 0
    span_ps = 1_000_000_000 + max(
        (event.offset_ps for field in _chunks(plane, 3) for event in _events(plane, field, counting)), default=0
    )
    for field in read_fields(plane, 0, len(plane)):
        content = plane[field.begin : field.end]
        if field.number == 1:
            pieces.append(number(1, field.value))
        elif field.number != 3:
            pieces.append(chunk(field.number, content))
        else:
            events = list(_events(plane, field, counting))
            total += len(events) * repetitions
            line = [_line_head(content), *_repeat(events, repetitions, span_ps)]
            pieces += [varint(3 << 3 | 2) + varint(sum(map(len, line))), *line]
    return pieces, total


def _repeat(events: list[Event], repetitions: int, span_ps: int) -> Iterator[bytes]:
    for first in range(0, repetitions, BLOCK):
        last = min(first + BLOCK, repetitions)
        yield b"".join(event.encode(repetition, span_ps) for repetition in range(first, last) for event in events)


def _line_head(line: bytes) -> bytes:
    fields = [field for field in read_fields(line, 0, len(line)) if field.number != 4]
    return b"".join(
        number(field.number, field.value)
        if field.wire == VARINT
        else chunk(field.number, line[field.begin : field.end])
        for field in fields
    )


def _chunks(data: bytes, wanted: int, begin: int = 0) -> Iterator[MessageField]:
    return (field for field in read_fields(data, begin, len(data)) if field.number == wanted and field.wire == CHUNK)


def _counting_stats(plane: bytes) -> Iterator[tuple[int, int]]:
    """Yield id and step of each stat that counts on."""
    for entry in _chunks(plane, 5):
        key, value = list(read_fields(plane, entry.begin, entry.end))
        name = next(
            (read_text(plane, field) for field in read_fields(plane, value.begin, value.end) if field.number == 2), ""
        )
        if name in COUNTING:
            yield key.value, COUNTING[name]


def _events(plane: bytes, line: MessageField, counting: dict[int, int]) -> Iterator[Event]:
    for field in read_fields(plane, line.begin, line.end):
        if field.number == 4:
            yield _event(plane, field, counting)


def _event(plane: bytes, event: MessageField, counting: dict[int, int]) -> Event:
    head, offset_ps = b"", 0
    tail: list[bytes | tuple[bytes, int, int]] = []
    for field in read_fields(plane, event.begin, event.end):
        if field.number == 1:
            head = number(1, field.value)
        elif field.number == 2:
            offset_ps = field.value
        elif field.number == 3:
            tail.append(number(3, field.value))
        else:
            tail.append(_stat(plane, field, counting))
    return Event(head, offset_ps, tuple(tail))


def _stat(plane: bytes, stat: MessageField, counting: dict[int, int]) -> bytes | tuple[bytes, int, int]:
    parts = list(read_fields(plane, stat.begin, stat.end))
    key, value = parts[0].value, parts[-1]
    if key in counting and value.wire == VARINT:
        return number(1, key) + varint(value.number << 3), signed(value.value), counting[key]
    return chunk(4, plane[stat.begin : stat.end])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--megabytes", type=float, default=295)
    parser.add_argument("--source", type=Path, default=RECORDED)
    options = parser.parse_args()
    events = grow(options.source.read_bytes(), options.output, int(options.megabytes * 1e6))
    print(f"{options.output}: {options.output.stat().st_size:,} bytes, {events:,} events")


if __name__ == "__main__":
    main()
