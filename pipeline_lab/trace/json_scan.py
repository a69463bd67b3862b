"""Compiled search for the objects of a JSON array, over damage if need be."""

from pipeline_lab.trace.compiled import compiled
from pipeline_lab.trace.wire import DAMAGED, ByteArray, Int64Array

QUOTE, BACKSLASH, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET = 0x22, 0x5C, 0x7B, 0x7D, 0x5B, 0x5D
MAX_OBJECT = 1 << 20
"""Bytes that one event may take."""

# What `find_objects` keeps between calls: where to go on, bytes looked at in vain that it may still spend, bytes lost,
# and where the first of them stands (-1 if none is).
AT, PATIENCE, LOST, FIRST_LOST, STATE_COLUMNS = range(5)


@compiled
def object_end(data: ByteArray, at: int, stop: int) -> int:
    """Return the position behind the object or array that begins at ``at``; `DAMAGED` if it does not end."""
    depth, in_string = 0, False
    while at < stop:
        byte = data[at]
        if byte == BACKSLASH and in_string:
            at += 1
        elif byte == QUOTE:
            in_string = not in_string
        elif in_string:
            pass
        elif byte in (OPEN_BRACE, OPEN_BRACKET):
            depth += 1
        elif byte in (CLOSE_BRACE, CLOSE_BRACKET):
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return DAMAGED


@compiled
def find_objects(data: ByteArray, bounds: Int64Array, state: Int64Array) -> int:
    """Find the next objects that lie side by side.

    An object that does not end is damage: the search goes on behind its first brace, as far as patience lasts.

    Args:
        data: The file.
        bounds: Filled with begin and end of each object, shape (n, 2).
        state: Where to go on, shape (STATE_COLUMNS,); changed.

    Returns:
        How many were found; fewer than ``len(bounds)`` at the end of the file.
    """
    at, stop, row = state[AT], len(data), 0
    broken = -1
    while at < stop and row < len(bounds) and state[PATIENCE] > 0:
        if data[at] != OPEN_BRACE:
            at += 1
            continue
        limit = min(stop, at + MAX_OBJECT)
        end = object_end(data, at, limit)
        if end == DAMAGED:
            state[PATIENCE] -= limit - at
            broken = at if broken < 0 else broken
            at += 1
            continue
        if broken >= 0:
            note_lost(state, broken, at)
            broken = -1
        bounds[row, 0], bounds[row, 1] = at, end
        row += 1
        at = end
    if state[PATIENCE] <= 0:
        broken, at = at if broken < 0 else broken, stop
    if broken >= 0:
        note_lost(state, broken, at)
    state[AT] = at
    return row


@compiled
def note_lost(state: Int64Array, begin: int, end: int) -> None:
    """Add ``[begin, end)`` to the bytes lost."""
    state[LOST] += end - begin
    if state[FIRST_LOST] < 0:
        state[FIRST_LOST] = begin
