"""Compiled loops over lines, names, events and stats of an XPlane (``xplane.proto``); see `wire` for what they assume."""

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.trace.compiled import compiled
from pipeline_lab.trace.instructions import fetch_early
from pipeline_lab.trace.wire import (
    CHUNK,
    DAMAGED,
    FIXED64,
    VARINT,
    VARINT_ROOM,
    ByteArray,
    Int8Array,
    Int32Array,
    Int64Array,
    read_field,
    read_likely,
    read_varint,
    read_varint_at_once,
    skip_varint,
    skip_varint_at_once,
)

AHEAD = 1024
"""Bytes that a loop over events has brought near before it comes to them."""
ROWS_AHEAD, LINES_AHEAD, CACHE_LINE = 8, 8, 64
"""How many rows ahead it does so where it jumps, and how many lines, of so many bytes, from a remembered position on."""

EVENTS = 4
"""Number of an XLine's field of events."""
# First bytes of an XEvent's fields.
METADATA_TAG, OFFSET_TAG, DURATION_TAG, STATS_TAG = 0x08, 0x10, 0x18, 0x22

# Columns of `read_line`, `read_names`.
LINE_ID, LINE_TIMESTAMP, LINE_NAME, LINE_NAME_END, LINE_DISPLAY, LINE_DISPLAY_END, LINE_EVENTS, LINE_COLUMNS = range(8)
NAME_ID, NAME_BEGIN, NAME_END, NAME_DISPLAY, NAME_DISPLAY_END, NAME_BODY, NAME_BODY_END, NAME_STATS, NAME_COLUMNS = (
    range(9)
)


@compiled
def read_line(data: ByteArray, begin: int, stop: int, most: int, out: Int64Array) -> int:
    """Write the ``LINE_…`` columns of one XLine, shape (LINE_COLUMNS,), all 0 before, as far as its first ``most`` events.

    Returns:
        Where it ends or breaks, or where the first of these events comes that is too many.
    """
    at, events = begin, 0
    while 0 <= at < stop:
        fetch_early(data, at + AHEAD)
        number, wire, value, after = read_likely(data, at, stop, EVENTS)
        if after < 0:
            break
        if number == EVENTS and wire == CHUNK:
            if events == most:
                break
            events += 1
        else:
            put_head(number, wire, value, after, out)
        at = after
    out[LINE_EVENTS] = events
    return at


@compiled
def put_head(number: int, wire: int, value: int, after: int, out: Int64Array) -> None:
    """Write a field of an XLine, other than an event, into its ``LINE_…`` columns; see `read_field`."""
    if wire == CHUNK:
        if number == 2:
            out[LINE_NAME], out[LINE_NAME_END] = after - value, after
        elif number == 11:
            out[LINE_DISPLAY], out[LINE_DISPLAY_END] = after - value, after
    elif number == 1:
        out[LINE_ID] = value
    elif number == 3:
        out[LINE_TIMESTAMP] = value


@compiled
def read_entry(data: ByteArray, begin: int, stop: int, out: Int64Array) -> int:
    """Write key and body of one entry {key=1, value=2} of a metadata map; return where it ends or breaks."""
    for column in range(len(out)):
        out[column] = 0
    at = begin
    while at < stop:
        number, wire, value, after = read_field(data, at, stop)
        if after < 0:
            return at
        if number == 1 and wire == VARINT:
            out[NAME_ID] = value
        elif number == 2 and wire == CHUNK:
            out[NAME_BODY], out[NAME_BODY_END] = after - value, after
        at = after
    return at


@compiled
def read_name(data: ByteArray, out: Int64Array) -> int:
    """Write the other ``NAME_…`` columns from the entry's body; return where it breaks or -1.

    XEventMetadata is {id=1, name=2, display_name=4, stats=5} and XStatMetadata {id=1, name=2}, so both read alike.
    """
    at, stop = out[NAME_BODY], out[NAME_BODY_END]
    while at < stop:
        number, wire, value, after = read_field(data, at, stop)
        if after < 0:
            return int(at)
        if number == 1 and wire == VARINT and out[NAME_ID] == 0:
            out[NAME_ID] = value
        elif number == 2 and wire == CHUNK:
            out[NAME_BEGIN], out[NAME_END] = after - value, after
        elif number == 4 and wire == CHUNK:
            out[NAME_DISPLAY], out[NAME_DISPLAY_END] = after - value, after
        elif number == 5 and wire == CHUNK:
            out[NAME_STATS] += 1
        at = after
    return DAMAGED


@compiled
def read_names(data: ByteArray, bounds: Int64Array, out: Int64Array) -> int:
    """Read the entries at ``bounds``, shape (n, 2), into ``out``, shape (n, NAME_COLUMNS); return a break or -1."""
    for row in range(len(bounds)):
        at = read_entry(data, bounds[row, 0], bounds[row, 1], out[row])
        if at != bounds[row, 1]:
            return at
        at = read_name(data, out[row])
        if at != DAMAGED:
            return at
    return DAMAGED


@compiled
def find_name(ids: Int64Array, order: Int32Array, wanted: int) -> int:
    """Return the index of a metadata id by bisection of the sorted ``ids``, or -1."""
    low = first_from(ids, 0, wanted)
    return int(order[low]) if low < len(ids) and ids[low] == wanted else -1


@compiled
def find_index(metadata_id: int, table: Int32Array, ids: Int64Array, order: Int32Array) -> int:
    """Return the index of a metadata id, which ``table`` holds if it is small, or -1."""
    return int(table[metadata_id]) if 0 <= metadata_id < len(table) else find_name(ids, order, metadata_id)


@compiled
def read_usual_event(data: ByteArray, begin: int, stop: int) -> tuple[int, int, int, int, int]:
    """Read an event as nearly all are written: metadata id, offset, duration (both ps), stats; `VARINT_ROOM` bytes have to follow it.

    Returns:
        These three, where its stats begin, and where it ends: elsewhere than at ``stop`` if it is another one, for `read_any_event`.
    """
    metadata_id, offset_ps, duration_ps, at = 0, 0, 0, begin
    if at >= stop or data[at] != METADATA_TAG:
        return 0, 0, 0, begin, DAMAGED
    metadata_id, at = read_varint_at_once(data, at + 1)
    if not 0 < at < stop or data[at] != OFFSET_TAG:
        return 0, 0, 0, begin, DAMAGED
    offset_ps, at = read_varint_at_once(data, at + 1)
    if 0 < at < stop and data[at] == DURATION_TAG:
        duration_ps, at = read_varint_at_once(data, at + 1)
    stats = at
    while 0 < at < stop and data[at] == STATS_TAG:
        if data[at + 1] < 0x80:
            at += 2 + data[at + 1]
        else:
            length, at = read_varint_at_once(data, at + 1)
            if at < 0 or not 0 <= length <= stop - at:
                return 0, 0, 0, begin, DAMAGED
            at += length
    return metadata_id, offset_ps, duration_ps, stats, at


@compiled
def read_event(data: ByteArray, begin: int, stop: int) -> tuple[int, int, int, bool, int, int]:
    """Return metadata id, offset, duration (both ps), whether it has a place in time, before which byte there is no stat, and where it ends or breaks."""
    if stop + VARINT_ROOM <= len(data):
        metadata_id, offset_ps, duration_ps, stats, end = read_usual_event(data, begin, stop)
        if end == stop:
            return metadata_id, offset_ps, duration_ps, True, stats, end
    metadata_id, offset_ps, duration_ps, placed, end = read_any_event(data, begin, stop)
    return metadata_id, offset_ps, duration_ps, placed, begin, end


@compiled
def read_any_event(data: ByteArray, begin: int, stop: int) -> tuple[int, int, int, bool, int]:
    """Read an event as `read_event` does, however it is written."""
    metadata_id, offset_ps, duration_ps, placed = 0, 0, 0, True
    at = begin
    while at < stop:
        number, wire, value, after = read_field(data, at, stop)
        if after < 0:
            break
        if wire == VARINT:
            if number == 1:
                metadata_id = value
            elif number == 2:
                offset_ps, placed = value, True
            elif number == 3:
                duration_ps = value
            elif number == 5:
                placed = False
        at = after
    return metadata_id, offset_ps, duration_ps, placed, at


_THOUSAND = np.uint64(1000)


@compiled
def to_ns(offset_ps: int, duration_ps: int) -> tuple[int, int]:
    """Round start and end down each, so that neighbors in picoseconds stay neighbors; return start and duration."""
    end_ps = offset_ps + duration_ps
    if offset_ps < 0 or end_ps < 0:
        start_ns, end_ns = offset_ps // 1000, end_ps // 1000
    else:  # dividing takes half the instructions where no sign has to be looked at
        start_ns = int(np.int64(np.uint64(offset_ps) // _THOUSAND))
        end_ns = int(np.int64(np.uint64(end_ps) // _THOUSAND))
    return start_ns, max(0, end_ns - start_ns)


@compiled
def fill_events(
    data: ByteArray,
    bounds: tuple[int, int],
    timestamp_ns: int,
    lookup: tuple[Int32Array, Int64Array, Int32Array],
    columns: tuple[Int64Array, Int64Array, Int32Array],
    first_row: int,
    places: tuple[Int64Array, int],
    head: Int64Array,
    keep: tuple[int, Int8Array, Int64Array, Int64Array],
    kept: tuple[Int32Array, Int64Array],
) -> tuple[int, int, int]:
    """Read a line's events into columns: start and duration (ns since the origin), name index.

    Events that only count occurrences have no place in time and are left out. A name that ``lookup`` does not know gets
    the index -1. ``first_row`` is the number on the line of the first event; ``places`` gets the position of every n-th one of the
    line, and holds n. What the line's other fields say goes to ``head`` (see `read_line`), to whose count of events those are
    added that were read or left out. Of the events of some names one stat is kept, see `keep_stat`.

    Returns:
        Events written; where the columns were full, or the line ends or breaks; and how many stats were kept.
    """
    table, ids, order = lookup
    start, duration, name_index = columns
    offsets, stride = places
    at, stop = bounds
    row, events, count = 0, 0, 0
    place = (first_row + stride - 1) // stride
    next_row = place * stride - first_row  # a division for each event would take a tenth of the time
    while 0 <= at < stop:
        fetch_early(data, at + AHEAD)
        number, wire, length, after = read_likely(data, at, stop, EVENTS)
        if after < 0:
            break
        if number == EVENTS and wire == CHUNK:
            if not 0 <= row < len(start):
                break
            metadata_id, offset_ps, duration_ps, placed, stats, end = read_event(data, after - length, after)
            if end != after:
                at = end
                break
            events += 1
            if placed:
                start_ns, duration[row] = to_ns(offset_ps, duration_ps)
                start[row] = timestamp_ns + start_ns
                name = find_index(metadata_id, table, ids, order)
                name_index[row] = name
                if keeps(name, keep[0], keep[1]):
                    count = keep_stat(data, stats, after, name, keep, kept, count, first_row + row)
                if row == next_row:
                    offsets[place] = at
                    place, next_row = place + 1, next_row + stride
                row += 1
        else:
            put_head(number, wire, length, after, head)
        at = after
    head[LINE_EVENTS] += events
    return row, at, count


@compiled
def fill_scattered(
    data: ByteArray,
    timestamp_ns: int,
    lookup: tuple[Int32Array, Int64Array, Int32Array],
    columns: tuple[Int64Array, Int64Array, Int32Array],
    offsets: Int64Array,
) -> int:
    """Read the events at ``offsets`` as `fill_events` does, moving the offsets of those written to the front.

    Returns:
        Events written.
    """
    table, ids, order = lookup
    start, duration, name_index = columns
    row = 0
    for at in offsets:
        _, _, length, after = read_field(data, at, len(data))
        metadata_id, offset_ps, duration_ps, placed, _, _ = read_event(data, after - length, after)
        if placed:
            start_ns, duration[row] = to_ns(offset_ps, duration_ps)
            start[row] = timestamp_ns + start_ns
            name_index[row] = find_index(metadata_id, table, ids, order)
            offsets[row] = at
            row += 1
    return row


@compiled
def keeps(name: int, first_name: int, of_name: Int8Array) -> bool:
    """Say whether a stat of the events of a name is kept; see `keep_stat`."""
    return first_name <= name < first_name + len(of_name) and of_name[name - first_name] >= 0


@compiled
def keep_stat(
    data: ByteArray,
    begin: int,
    stop: int,
    name: int,
    keep: tuple[int, Int8Array, Int64Array, Int64Array],
    kept: tuple[Int32Array, Int64Array],
    count: int,
    row: int,
) -> int:
    """Append the stat that is kept of events of this name, and the event's row, to what is kept.

    ``keep`` is the index of a first name, for it and those that follow the number of the stat, or -1, and the ids of each stat
    and their bounds (see `find_event_stats`).

    Returns:
        How many are kept now; -1, and for all later ones, if the stat is another value than a number.
    """
    first_name, of_name, wanted, bounds = keep
    rows, values = kept
    if count < 0:
        return count
    stat = of_name[name - first_name]
    kind, value, _ = find_event_stat(data, begin, stop, wanted[bounds[stat] : bounds[stat + 1]])
    if kind == ABSENT:
        return count
    if kind not in (UINT64, INT64):
        return -1
    rows[count], values[count] = row, value
    return count + 1


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
        if 8 <= data[at] < 0x80 and data[at] & 7 == VARINT:  # id, offset and duration of an event, or the like
            at = skip_varint(data, at + 1, stop)
            if at < 0:
                break
            continue
        number, wire, value, after = read_likely(data, at, stop, field)
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
def find_usual_stat(data: ByteArray, begin: int, stop: int, wanted: Int64Array) -> tuple[int, int, int, int]:
    """Find a stat as `find_stat` does in an event that is written as nearly all are; `VARINT_ROOM` bytes have to follow it.

    Returns:
        Its kind and value, and where the search ended: elsewhere than at ``stop`` in another event, for `find_stat`.
    """
    at = begin
    while 0 <= at < stop and data[at] in (METADATA_TAG, OFFSET_TAG, DURATION_TAG):
        at = skip_varint_at_once(data, at + 1)
    while 0 <= at < stop and data[at] == STATS_TAG and data[at + 1] < 0x80:
        after = at + 2 + data[at + 1]
        if at + 2 >= after or after > stop or data[at + 2] != STAT_ID_TAG:
            break
        metadata_id, value = int(np.int64(data[at + 3])), at + 4
        if metadata_id >= 0x80:
            metadata_id, value = read_varint_at_once(data, at + 3)
        if not 0 < value <= after:
            break
        if is_one_of(metadata_id, wanted):
            if value + 1 < after and data[value] in (UINT64 << 3, INT64 << 3, REFERENCE << 3):
                bits, end = read_varint_at_once(data, value + 1)
                return int(np.int64(data[value]) >> 3), bits, 0, stop if end == after else DAMAGED
            break
        at = after
    return ABSENT, 0, 0, at


@compiled
def find_event_stat(data: ByteArray, begin: int, stop: int, wanted: Int64Array) -> tuple[int, int, int]:
    """Find a stat in an event; return its kind and value, see `find_stat`."""
    if stop + VARINT_ROOM <= len(data):
        kind, bits, bits_end, end = find_usual_stat(data, begin, stop, wanted)
        if end == stop:
            return kind, bits, bits_end
    return find_stat(data, begin, stop, 4, wanted)


@compiled
def fetch_event_early(data: ByteArray, near: int) -> None:
    """Have an event brought near that is looked for from a remembered position on."""
    for line in range(LINES_AHEAD):
        fetch_early(data, near + line * CACHE_LINE)


@compiled
def find_event_stats(
    data: ByteArray,
    stop: int,
    offsets: Int64Array,
    stride: int,
    rows: Int64Array,
    first: int,
    end: int,
    wanted: Int64Array,
    bounds: Int64Array,
    kinds: Int8Array,
    values: Int64Array,
) -> None:
    """Find some stats in the events ``rows[first:end]`` of a line.

    The ids of stat ``s`` are ``wanted[bounds[s]:bounds[s + 1]]``; ``kinds`` has shape (stats, len(rows)), ``values`` (stats, len(rows), 2), see `find_stat`.
    """
    row, at = -1, 0
    for k in range(first, end):
        fetch_event_early(data, offsets[rows[min(k + ROWS_AHEAD, end - 1)] // stride])
        if not (row <= rows[k] < row + stride and row >= 0):
            row = rows[k] - rows[k] % stride
            at = offsets[row // stride]
        while at < stop:
            number, wire, value, after = read_likely(data, at, stop, EVENTS)
            if after < 0:
                return
            if number == EVENTS and wire == CHUNK:
                if row == rows[k]:
                    for s in range(len(bounds) - 1):
                        found = find_event_stat(data, after - value, after, wanted[bounds[s] : bounds[s + 1]])
                        kinds[s, k], values[s, k, 0], values[s, k, 1] = found
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


@compiled
def find_kept(
    kept: tuple[Int32Array, Int64Array],
    name_index: Int32Array,
    first_name: int,
    of_name: Int8Array,
    stat: int,
    rows: Int64Array,
    known: NDArray[np.bool_],
    values: Int64Array,
) -> bool:
    """Find a stat of events among those that were kept, see `keep_stat`, and say whether it was kept of all of these events."""
    kept_rows, kept_values = kept
    at, before = 0, 0
    for k in range(len(rows)):
        row, name = rows[k], name_index[rows[k]]
        if not keeps(name, first_name, of_name) or of_name[name - first_name] != stat:
            return False
        at = first_from(kept_rows, at if row >= before else 0, row)
        known[k] = at < len(kept_rows) and kept_rows[at] == row
        values[k] = kept_values[at] if known[k] else 0
        before = row
    return True


NEAR = 8
"""Among how many the one that is looked for lies as a rule."""


@compiled
def first_from(numbers: Int32Array | Int64Array, begin: int, least: int) -> int:
    """Return where the first of these ascending numbers is, from ``begin`` on, that is not below ``least``."""
    low = begin
    while low < len(numbers) and low < begin + NEAR and numbers[low] < least:
        low += 1
    high = len(numbers) if low == begin + NEAR else low
    while low < high:  # by hand: NumPy's own bisection takes a second to compile
        middle = (low + high) // 2
        if numbers[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low
