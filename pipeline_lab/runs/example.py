"""The features of a ``tf.train.Example``, read without TensorFlow (``core/example/example.proto`` and ``feature.proto``).

Messages are ``Example {Features features = 1}``, ``Features {map<string, Feature> feature = 1}`` and ``Feature`` with one
of the lists ``bytes_list = 1``, ``float_list = 2``, ``int64_list = 3``, each ``{repeated value = 1}``, packed for numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline_lab.workloads.records import Kind

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_KINDS: dict[int, Kind] = {1: "bytes", 2: "float32", 3: "int64"}
FLOAT_BYTES = 4


class NoExampleError(ValueError):
    """A record is no Example."""


@dataclass(frozen=True)
class FoundFeature:
    """A feature of one record.

    Attributes:
        kind: Of its values; None where it has none.
        count: Of its values.
    """

    kind: Kind | None
    count: int


def find_features(record: bytes) -> dict[str, FoundFeature]:
    """Return the features of a record by name.

    Raises:
        NoExampleError: It is none.
    """
    view = memoryview(record)
    found = {}
    for features in _messages(view, 1):
        for entry in _messages(features, 1):
            parts = dict(_fields(entry))
            name = parts.get(1, b"")
            if isinstance(name, int):
                raise NoExampleError
            try:
                found[bytes(name).decode()] = _feature(parts.get(2, b""))
            except UnicodeDecodeError:
                raise NoExampleError from None
    if record and not found:
        raise NoExampleError
    return found


def _feature(message: "memoryview | bytes | int") -> FoundFeature:
    if isinstance(message, int):
        raise NoExampleError
    for number, content in _fields(memoryview(message)):
        if number not in _KINDS or isinstance(content, int):
            raise NoExampleError
        kind = _KINDS[number]
        return FoundFeature(kind, sum(_count(kind, value) for field, value in _fields(content) if field == 1))
    return FoundFeature(None, 0)


def _count(kind: Kind, value: "memoryview | int") -> int:
    """Return how many values one field holds: a list of numbers is packed into a single one."""
    if isinstance(value, int) or kind == "bytes":
        return 1
    if kind == "float32":
        return max(1, len(value) // FLOAT_BYTES)
    return sum(byte < 0x80 for byte in value)  # each varint ends with a byte below 128


def _messages(view: memoryview, wanted: int) -> Iterator[memoryview]:
    for number, content in _fields(view):
        if number == wanted:
            if isinstance(content, int):
                raise NoExampleError
            yield content


def _fields(view: memoryview) -> Iterator[tuple[int, "memoryview | int"]]:
    """Yield number and content of each field of a message; numbers of fixed size as their bytes."""
    position = 0
    while position < len(view):
        tag, position = _varint(view, position)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, position = _varint(view, position)
            yield number, value
            continue
        if wire == _BYTES:
            length, position = _varint(view, position)
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
        else:
            raise NoExampleError
        if position + length > len(view):
            raise NoExampleError
        yield number, view[position : position + length]
        position += length


def _varint(view: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(view) and shift < 64:
        byte = view[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
        shift += 7
    raise NoExampleError
