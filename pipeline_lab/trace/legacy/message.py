"""Walk small protobuf messages field by field, without generated classes.

This is for the few kilobytes that TensorFlow derived from a trace, and for `local.trace`; the compiled loops over an
XSpace are in `wire`. Every length is checked against the bytes at hand, and nothing is copied.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

VARINT, FIXED64, CHUNK, FIXED32 = 0, 1, 2, 5
_MAX_FIELD = (1 << 29) - 1
_SIGN = 1 << 63


class DamagedMessageError(ValueError):
    """The bytes are not a valid protobuf message.

    Attributes:
        position: Where the invalid field begins, bytes from the start of the message's buffer.
    """

    def __init__(self, position: int) -> None:
        super().__init__(f"no protobuf field at byte {position}")
        self.position = position


class MessageField(NamedTuple):
    """One field of the message.

    Attributes:
        number: Field number.
        wire: `VARINT`, `FIXED64`, `CHUNK` or `FIXED32`.
        value: The number of a varint, unsigned; 0 for the others.
        begin, end: Bounds of the content: a chunk's bytes, without their length, or the number's.
    """

    number: int
    wire: int
    value: int
    begin: int
    end: int


def read_varint(data: bytes | memoryview, at: int, stop: int) -> tuple[int, int]:
    """Return the unsigned number at ``at``, cut to 64 bits, and the position after it.

    Raises:
        DamagedMessageError: The number does not end in ten bytes or before ``stop``.
    """
    if at < stop and data[at] < 0x80:
        return data[at], at + 1
    value = shift = 0
    for position in range(at, min(at + 10, stop)):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position + 1
        shift += 7
    raise DamagedMessageError(at)


def read_field(data: bytes | memoryview, at: int, stop: int) -> MessageField:
    """Return the field at ``at``; the next one begins at its end.

    Raises:
        DamagedMessageError: It is cut off or has a wire type that protobuf does not know.
    """
    tag, content = read_varint(data, at, stop)
    number, wire = tag >> 3, tag & 7
    value, end = 0, content
    if wire == VARINT:
        value, end = read_varint(data, content, stop)
    elif wire == CHUNK:
        length, content = read_varint(data, content, stop)
        end = content + length
    elif wire in (FIXED64, FIXED32):
        end += 8 if wire == FIXED64 else 4
    else:
        raise DamagedMessageError(at)
    if end > stop or not 0 < number <= _MAX_FIELD:
        raise DamagedMessageError(at)
    return MessageField(number, wire, value, content, end)


def read_fields(data: bytes | memoryview, begin: int, stop: int) -> Iterator[MessageField]:
    """Yield the fields of the message at ``[begin, stop)``.

    Raises:
        DamagedMessageError: A field is invalid (see `read_field`).
    """
    at = begin
    while at < stop:
        field = read_field(data, at, stop)
        yield field
        at = field.end


def read_double(data: bytes, field: MessageField) -> float:
    """Return the value of a `FIXED64` field that holds a double."""
    return float(struct.unpack_from("<d", data, field.begin)[0])


def read_text(data: bytes | memoryview, field: MessageField) -> str:
    """Return a chunk as text; bytes that are no UTF-8 become replacement characters."""
    return bytes(data[field.begin : field.end]).decode("utf-8", "replace")


def signed(value: int) -> int:
    """Read an unsigned 64-bit number as the signed one with the same bits."""
    return value - 2 * _SIGN if value >= _SIGN else value
