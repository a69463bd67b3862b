"""Compiled loop over the events of a serialised `Trace` (trace_events.proto), bounds-checked like those in `wire`.

`TraceEvent{device_id=1, resource_id=2, name=3, timestamp_ps=9, duration_ps=10, args=11 (map)}`. Nothing else ever came,
so any other field is damage.
"""

from pipeline_lab.trace.compiled import compiled
from pipeline_lab.trace.plane_wire import to_ns
from pipeline_lab.trace.wire import CHUNK, DAMAGED, ByteArray, Int64Array, read_field, read_varint

DEVICE_TAG, RESOURCE_TAG, NAME_TAG, TIMESTAMP_TAG, DURATION_TAG, ARGUMENT_TAG = 0x08, 0x10, 0x1A, 0x48, 0x50, 0x5A
LONG_NAME = tuple(b"long name")
"""The argument that holds the full name where TensorFlow 2.x shortened it to what follows the last colon."""

# Columns of `read_events`: positions are bytes of the file, those of the full name 0 without one; the arguments last
# from the first of them to the end of the event.
DEVICE, RESOURCE, NAME, NAME_END, FULL, FULL_END, START_NS, DURATION_NS, ARGS, END, EVENT_COLUMNS = range(11)


@compiled
def read_events(data: ByteArray, at: int, out: Int64Array) -> tuple[int, int]:
    """Read the events that stand side by side from ``at`` on into ``out``, shape (n, EVENT_COLUMNS).

    Returns:
        Events written, and the position of what is none, or where ``out`` was full.
    """
    row = 0
    while at < len(data) and row < len(out):
        after, _ = read_event(data, at, out[row])
        if after == DAMAGED:
            break
        row += 1
        at = after
    return row, at


@compiled
def read_event(data: ByteArray, at: int, out: Int64Array) -> tuple[int, int]:
    """Read the event at ``at``, shape (EVENT_COLUMNS,).

    Returns:
        The position behind it, `DAMAGED` if there is none, and the position up to which was looked.
    """
    number, wire, length, end = read_field(data, at, len(data))
    if end < 0 or number != 4 or wire != CHUNK:
        return DAMAGED, at
    out[:] = 0
    out[ARGS] = out[END] = end
    start_ps, duration_ps, named = 0, 0, False
    at = end - length
    while at < end:
        tag = data[at]
        value, after = read_varint(data, at + 1, end)
        if after < 0:
            return DAMAGED, at
        if tag == DEVICE_TAG:
            out[DEVICE] = value
        elif tag == RESOURCE_TAG:
            out[RESOURCE] = value
        elif tag == TIMESTAMP_TAG:
            start_ps = value
        elif tag == DURATION_TAG:
            duration_ps = max(0, value)
        elif tag not in (NAME_TAG, ARGUMENT_TAG) or not 0 <= value <= end - after:
            return DAMAGED, at
        elif tag == NAME_TAG:
            out[NAME], out[NAME_END], named = after, after + value, True
            after += value
        else:
            out[ARGS] = min(out[ARGS], at)
            read_full_name(data, after, after + value, out)
            after += value
        at = after
    out[START_NS], out[DURATION_NS] = to_ns(start_ps, duration_ps)
    return (end if named else DAMAGED), at


@compiled
def read_full_name(data: ByteArray, begin: int, stop: int, out: Int64Array) -> None:
    """Write the bounds of the full name if the argument at ``[begin, stop)``, {key=1, value=2}, holds it."""
    is_it, value_begin, value_end = False, 0, 0
    at = begin
    while at < stop:
        number, wire, value, after = read_field(data, at, stop)
        if after < 0:
            return
        if number == 1 and wire == CHUNK:
            is_it = is_long_name(data, after - value, after)
        elif number == 2 and wire == CHUNK:
            value_begin, value_end = after - value, after
        at = after
    if is_it:
        out[FULL], out[FULL_END] = value_begin, value_end


@compiled
def is_long_name(data: ByteArray, begin: int, stop: int) -> bool:
    if stop - begin != len(LONG_NAME):
        return False
    for k in range(len(LONG_NAME)):  # noqa: SIM110 - Numba knows no generators
        if data[begin + k] != LONG_NAME[k]:
            return False
    return True
