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
    """The bytes make no sense as a protobuf message.

    Attributes:
        position: Where the field that makes no sense begins, bytes from the start of the message's buffer.
    """

    def __init__(self, position: int) -> None:
        super().__init__(f"no protobuf field at byte {position}")
        self.position = position


class Field(NamedTuple):
    """One field as it stands in the message.

    Attributes:
        number: Field number.
        wire: `VARINT`, `FIXED64`, `CHUNK` or `FIXED32`.
        value: The number of a varint, unsigned; 0 for the others.
        begin, end: Bounds of a chunk's or a fixed number's bytes; of nothing for a varint.
    """

    number: int
    wire: int
    value: int
    begin: int
    end: int


def read_varint(data: bytes, at: int, stop: int) -> tuple[int, int]:
    """Return the unsigned number at ``at``, cut to 64 bits, and the position behind it.

    Raises:
        DamagedMessageError: The number does not end in ten bytes or before ``stop``.
    """
    value = shift = 0
    for position in range(at, min(at + 10, stop)):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position + 1
        shift += 7
    raise DamagedMessageError(at)


def read_fields(data: bytes, begin: int = 0, stop: int | None = None) -> Iterator[Field]:
    """Yield the fields of the message at ``[begin, stop)``.

    Raises:
        DamagedMessageError: A field is cut off or has a wire type that protobuf does not know.
    """
    at, stop = begin, len(data) if stop is None else stop
    while at < stop:
        start = at
        tag, at = read_varint(data, at, stop)
        number, wire = tag >> 3, tag & 7
        value, content = 0, at
        if wire == VARINT:
            value, at = read_varint(data, at, stop)
            content = at
        elif wire == CHUNK:
            length, content = read_varint(data, at, stop)
            at = content + length
        elif wire in (FIXED64, FIXED32):
            at += 8 if wire == FIXED64 else 4
        else:
            raise DamagedMessageError(start)
        if at > stop or not 0 < number <= _MAX_FIELD:
            raise DamagedMessageError(start)
        yield Field(number, wire, value, content, at)


def read_double(data: bytes, field: Field) -> float:
    """Return the value of a `FIXED64` field that holds a double."""
    return float(struct.unpack_from("<d", data, field.begin)[0])


def read_text(data: bytes, field: Field) -> str:
    """Return a chunk as text; bytes that are no UTF-8 become replacement characters."""
    return bytes(data[field.begin : field.end]).decode("utf-8", "replace")


def signed(value: int) -> int:
    """Read an unsigned 64-bit number as the signed one with the same bits."""
    return value - 2 * _SIGN if value >= _SIGN else value
