"""Compiled steps over the protobuf wire format.

``data`` is the whole file as uint8; ``at``, ``begin`` and ``stop`` are positions in it. Every read is checked against
``stop``, no length from the file is trusted, and nothing here allocates: callers count first, then pass arrays.
A position of -1 means that the bytes are invalid.
"""

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.trace.compiled import compiled
from pipeline_lab.trace.instructions import count_zeros, load_word, push_sevens

ByteArray = NDArray[np.uint8]
Int64Array = NDArray[np.int64]
Int32Array = NDArray[np.int32]
Int8Array = NDArray[np.int8]

VARINT, FIXED64, CHUNK, FIXED32 = 0, 1, 2, 5
DAMAGED = -1


@compiled
def read_varint(data: ByteArray, at: int, stop: int) -> tuple[int, int]:
    """Return the number at ``at`` (wrapped to int64) and the position after it."""
    if at < stop and data[at] < 0x80:
        return int(np.int64(data[at])), at + 1
    value = np.uint64(0)
    shift = np.uint64(0)
    for position in range(at, min(at + 10, stop)):
        byte = data[position]
        value |= np.uint64(byte & np.uint8(0x7F)) << shift
        if byte < 0x80:
            return int(np.int64(value)), position + 1
        shift += np.uint64(7)
    return 0, DAMAGED


VARINT_ROOM = 10
"""Bytes that a number may take."""
_ENDS, _OTHERS = np.uint64(0x8080_8080_8080_8080), np.uint64(0x7F7F_7F7F_7F7F_7F7F)
"""The bit of each byte that says whether its number goes on, and the others, which are the number."""
_ONE = np.uint64(1)


@compiled
def read_varint_at_once(data: ByteArray, at: int) -> tuple[int, int]:
    """Read a number as `read_varint` does, without a branch for each byte; `VARINT_ROOM` bytes must be there."""
    word = load_word(data, at)
    ends = ~word & _ENDS
    bits = push_sevens(word & (ends ^ (ends - _ONE)) & _OTHERS)
    if ends:
        return int(np.int64(bits)), at + (count_zeros(ends) >> 3) + 1
    bits |= np.uint64(data[at + 8] & np.uint8(0x7F)) << np.uint64(56)
    if data[at + 8] < 0x80:
        return int(np.int64(bits)), at + 9
    if data[at + 9] < 0x80:
        return int(np.int64(bits | np.uint64(data[at + 9]) << np.uint64(63))), at + 10
    return 0, DAMAGED


@compiled
def skip_varint_at_once(data: ByteArray, at: int) -> int:
    """Return the position after the number at ``at``, of which `VARINT_ROOM` bytes must be there."""
    ends = ~load_word(data, at) & _ENDS
    if ends:
        return at + (count_zeros(ends) >> 3) + 1
    if data[at + 8] < 0x80:
        return at + 9
    return at + 10 if data[at + 9] < 0x80 else DAMAGED


@compiled
def skip_varint(data: ByteArray, at: int, stop: int) -> int:
    """Return the position after the number at ``at``."""
    for position in range(at, min(at + 10, stop)):
        if data[position] < 0x80:
            return position + 1
    return DAMAGED


@compiled
def read_fixed(data: ByteArray, at: int, width: int) -> int:
    """Return ``width`` little-endian bytes as int64; the caller has checked that they are there."""
    value = np.uint64(0)
    for k in range(width):
        value |= np.uint64(data[at + k]) << np.uint64(8 * k)
    return int(np.int64(value))


@compiled
def read_field(data: ByteArray, at: int, stop: int) -> tuple[int, int, int, int]:
    """Return number, wire type, value and the position after the field at ``at``.

    The value of a chunk is its length: its bytes are ``[next - value, next)``.
    """
    tag, at = read_varint(data, at, stop)
    number, wire = tag >> 3, tag & 7
    if at < 0 or not 0 < number < 1 << 29:
        return 0, 0, 0, DAMAGED
    if wire == VARINT:
        value, at = read_varint(data, at, stop)
        return number, wire, value, at
    if wire == CHUNK:
        length, at = read_varint(data, at, stop)
        if at < 0 or not 0 <= length <= stop - at:
            return 0, 0, 0, DAMAGED
        return number, wire, length, at + length
    width = 8 if wire == FIXED64 else 4
    if wire not in (FIXED64, FIXED32) or width > stop - at:
        return 0, 0, 0, DAMAGED
    return number, wire, read_fixed(data, at, width), at + width


@compiled
def read_likely(data: ByteArray, at: int, stop: int, likely: int) -> tuple[int, int, int, int]:
    """Read a field as `read_field` does, which takes several times as long for what nearly all events and stats are.

    That is a chunk of the number ``likely``, which is below 16, with a length of a single byte.
    """
    if at + 1 < stop and data[at] == likely << 3 | CHUNK and data[at + 1] < 0x80 and at + 2 + data[at + 1] <= stop:
        return likely, CHUNK, int(data[at + 1]), at + 2 + data[at + 1]
    return read_field(data, at, stop)


@compiled
def count_chunks(data: ByteArray, begin: int, stop: int) -> tuple[int, int]:
    """Count the chunks of a message; also return where it ends or breaks."""
    at, count = begin, 0
    while at < stop:
        _, wire, _, after = read_field(data, at, stop)
        if after < 0:
            return count, at
        count += wire == CHUNK
        at = after
    return count, at


@compiled
def index_chunks(data: ByteArray, begin: int, stop: int, numbers: Int32Array, bounds: Int64Array) -> None:
    """Write field number and bounds of the message's first ``len(numbers)`` chunks; ``bounds`` has shape (n, 2)."""
    at, row = begin, 0
    while at < stop and row < len(numbers):
        number, wire, value, after = read_field(data, at, stop)
        if after < 0:
            return
        if wire == CHUNK:
            numbers[row] = number
            bounds[row, 0] = after - value
            bounds[row, 1] = after
            row += 1
        at = after
