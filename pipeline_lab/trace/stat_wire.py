"""Compiled search for the stats of an XPlane's events and names (``xplane.proto``); see `wire` for what it assumes."""

from pipeline_lab.trace.compiled import compiled
from pipeline_lab.trace.plane_wire import EVENT_TAG
from pipeline_lab.trace.wire import (
    CHUNK,
    FIXED64,
    VARINT,
    ByteArray,
    Int8Array,
    Int64Array,
    is_short_chunk,
    read_field,
    read_varint,
)

STAT_ID_TAG = 0x08
"""First byte of an XStat's id."""

# Kinds of stat values: the field numbers of XStat's `value`.
ABSENT, DOUBLE, UINT64, INT64, TEXT, BYTES, REFERENCE = 0, 2, 3, 4, 5, 6, 7


@compiled
def find_stat(data: ByteArray, begin: int, stop: int, field: int, wanted: Int64Array) -> tuple[int, int, int]:
    """Find a stat in a message whose stats have the number ``field``.

    Returns:
        Its kind, and its value: bits of the number, or begin and end of its bytes.
    """
    at = begin
    while at < stop:
        if is_short_chunk(data, at, stop, field << 3 | CHUNK):
            number, wire, value, after = field, CHUNK, int(data[at + 1]), at + 2 + data[at + 1]
        else:
            number, wire, value, after = read_field(data, at, stop)
            if after < 0:
                break
        if number == field and wire == CHUNK and may_be_one(data, after - value, after, wanted):
            metadata_id, kind, bits, end = read_stat(data, after - value, after)
            if is_one_of(metadata_id, wanted):
                return kind, bits, end
        at = after
    return ABSENT, 0, 0


@compiled
def may_be_one(data: ByteArray, begin: int, stop: int, wanted: Int64Array) -> bool:
    """Say whether an XStat may have one of these ids, by its first field: every profiler writes the id first."""
    if begin >= stop or data[begin] != STAT_ID_TAG:
        return True
    metadata_id, _ = read_varint(data, begin + 1, stop)
    return is_one_of(metadata_id, wanted)


@compiled
def is_one_of(metadata_id: int, wanted: Int64Array) -> bool:
    for k in range(len(wanted)):  # noqa: SIM110 - Numba knows no generators
        if wanted[k] == metadata_id:
            return True
    return False


@compiled
def read_stat(data: ByteArray, begin: int, stop: int) -> tuple[int, int, int, int]:
    """Return metadata id, kind and value of one XStat (see `find_stat`)."""
    metadata_id, kind, bits, end = 0, ABSENT, 0, 0
    at = begin
    while at < stop:
        number, wire, value, after = read_field(data, at, stop)
        if after < 0:
            break
        if number == 1 and wire == VARINT:
            metadata_id = value
        elif wire == CHUNK and number in (TEXT, BYTES):
            kind, bits, end = number, after - value, after
        elif (wire == VARINT and number in (UINT64, INT64, REFERENCE)) or (wire == FIXED64 and number == DOUBLE):
            kind, bits = number, value
        at = after
    return metadata_id, kind, bits, end


@compiled
def find_event_stats(
    data: ByteArray,
    stop: int,
    offsets: Int64Array,
    stride: int,
    rows: Int64Array,
    wanted: Int64Array,
    kinds: Int8Array,
    values: Int64Array,
) -> None:
    """Find a stat in the events ``rows`` of a line; ``values`` has shape (len(rows), 2), see `find_stat`."""
    row, at = -1, 0
    for k in range(len(rows)):
        if not (row <= rows[k] < row + stride and row >= 0):
            row = rows[k] - rows[k] % stride
            at = offsets[row // stride]
        while at < stop:
            if row < rows[k] and is_short_chunk(data, at, stop, EVENT_TAG):
                row += 1
                at += 2 + data[at + 1]
                continue
            number, wire, value, after = read_field(data, at, stop)
            if after < 0:
                return
            if number == 4 and wire == CHUNK:
                if row == rows[k]:
                    kinds[k], values[k, 0], values[k, 1] = find_stat(data, after - value, after, 4, wanted)
                    break
                row += 1
            at = after


@compiled
def find_name_stats(
    data: ByteArray, bodies: Int64Array, wanted: Int64Array, kinds: Int8Array, values: Int64Array
) -> None:
    """Find a stat in event metadata at ``bodies``, shape (n, 2)."""
    for k in range(len(bodies)):
        kinds[k], values[k, 0], values[k, 1] = find_stat(data, bodies[k, 0], bodies[k, 1], 5, wanted)
