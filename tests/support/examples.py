"""``tf.train.Example`` messages, put together by hand."""

import struct


def example(**features: bytes) -> bytes:
    """Return an Example of features made by the functions below."""
    entries = (_field(1, _field(1, name.encode()) + _field(2, feature)) for name, feature in features.items())
    return _field(1, b"".join(entries))


def int64s(*values: int) -> bytes:
    return _field(3, _field(1, b"".join(map(_varint, values))) if values else b"")


def floats(*values: float) -> bytes:
    return _field(2, _field(1, struct.pack(f"<{len(values)}f", *values)))


def strings(*values: bytes) -> bytes:
    return _field(1, b"".join(_field(1, value) for value in values))


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    low = value & 0x7F
    return bytes([low]) if value < 0x80 else bytes([low | 0x80]) + _varint(value >> 7)
