"""The compiled loops over a pipeline's events: how they nest, who made which element, what a wait was spent on, sums.

Events are columns, sorted by start and then by length, the longest first, so that an outer event comes before what lies
in it. Row numbers are those of the columns (of `threads.Threads`); -1 stands for none. All of Numba's part in the
analysis of a pipeline is here.
"""

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.trace.compiled import compiled

Int64Array = NDArray[np.int64]
Int32Array = NDArray[np.int32]
Int8Array = NDArray[np.int8]
BoolArray = NDArray[np.bool_]

# Numbers of `kinds.Role`.
WAIT, ITERATOR, PRODUCE, CONSUME, FUNCTION, NESTED_FUNCTION = 1, 2, 3, 4, 5, 6
PROCESS, DONE, OPERATION, OUTER_WAIT, BACKGROUND_FUNCTION = 7, 8, 9, 10, 11


@compiled
def add_up(
    rows: tuple[Int64Array, Int64Array, Int32Array, Int8Array, Int32Array],
    types: tuple[Int32Array, Int32Array],
    wait: Int32Array,
    own_ns: Int64Array,
    operations: Int64Array,
    waiting_ns: Int64Array,
) -> None:
    """Add up every event's own time: its length without that of the events in it. The last three change in place.

    Args:
        rows: Start and end of each row, the row around it, its role, its stage.
        types: Of each row its name, and of each name the type of its op.
        wait: Of each row the number of its wait, -1 for none.
        own_ns: Of every stage, shape (n_stages,).
        operations: Calls and time of each stage's ops by type, shape (n_stages, n_types, 2).
        waiting_ns: Of every call that waits, shape (n_waits,).
    """
    start, end, around, role, stage = rows
    name, type_of = types
    for row in range(len(start)):
        if role[row] == OPERATION and stage[row] >= 0:
            operations[stage[row], type_of[name[row]], 0] += 1
        length_ns = end[row] - start[row]
        for at, own in ((np.int32(row), length_ns), (around[row], -length_ns)):
            if at < 0 or stage[at] < 0:
                continue
            if wait[at] >= 0:
                waiting_ns[wait[at]] += own
            kind = role[at]
            if kind == OPERATION:
                operations[stage[at], type_of[name[at]], 1] += own
            elif kind in (ITERATOR, PRODUCE, CONSUME, BACKGROUND_FUNCTION) or (
                kind == NESTED_FUNCTION and around[at] >= 0 and role[around[at]] == BACKGROUND_FUNCTION
            ):
                own_ns[stage[at]] += own


@compiled
def add_by_stage(rows: Int64Array, values: Int64Array, stage: Int32Array, total: Int64Array) -> None:
    """Add the value of each of these rows to the total of its stage, if it has one."""
    for k in range(len(rows)):
        if stage[rows[k]] >= 0:
            total[stage[rows[k]]] += values[k]


@compiled
def add_runs(
    runs: Int64Array, rows: tuple[Int64Array, Int64Array, Int32Array, Int8Array, Int32Array], total: Int64Array
) -> None:
    """Add the length of each run of a function to the total of its stage, but for runs that lie in another one.

    Args:
        runs: Their rows.
        rows: Start and end of each row, the row around it, its role, its stage.
        total: Of every stage, changed in place.
    """
    start, end, around, role, stage = rows
    for run in runs:
        is_inner = around[run] >= 0 and role[around[run]] in (PROCESS, DONE)
        if stage[run] >= 0 and not is_inner:
            total[stage[run]] += end[run] - start[run]


@compiled
def sort_by_number(rows: Int64Array, number: Int32Array, ends: Int64Array, out: Int64Array) -> None:
    """Write the rows number by number, those of one in their order, and where each number's end.

    Args:
        rows: Shape (n,).
        number: Of each of them, shape (n,).
        ends: The result, 0 before, shape (n_numbers + 1,); the last one is spare.
        out: The rows, shape (n,).
    """
    for k in number:
        ends[k + 1] += 1
    for k in range(1, len(ends)):
        ends[k] += ends[k - 1]
    for k in range(len(rows)):
        out[ends[number[k]]] = rows[k]
        ends[number[k]] += 1


@compiled
def find_spans(rows: Int64Array, start: Int64Array, name: Int32Array, first: Int64Array, last: Int64Array) -> None:
    """Lower ``first`` and raise ``last`` of each name to the starts of its rows; both have shape (n_names,)."""
    for row in rows:
        first[name[row]] = min(first[name[row]], start[row])
        last[name[row]] = max(last[name[row]], start[row])


NOBODY = -1


@compiled
def find_waiting(
    rows: tuple[Int64Array, Int64Array, Int32Array, Int8Array, Int32Array],
    has_threads: BoolArray,
    shortest_ns: int,
    number: Int32Array,
    waits: tuple[Int64Array, Int64Array, Int64Array],
) -> int:
    """Find the calls that wait for their stage's own threads; return how many there are.

    A call that goes on to the stage below makes the element itself.

    Args:
        rows: Start and end of each row, the row around it, its role, the stage of an iterator's event.
        has_threads: Of every stage.
        shortest_ns: Waits shorter than this are none.
        number: Of every row the number of its wait, -1 for none; the result.
        waits: Of each wait its row, the row that takes its element (-1: it ends with the call), and until when it lasts; the result.
    """
    start, end, parent, role, place = rows
    own_row, taken_by, ready_ns = waits
    for row in range(len(start)):
        around = parent[row]
        number[row] = NOBODY
        if role[row] == ITERATOR:
            if has_threads[place[row]]:
                number[row] = row
            if around >= 0:
                number[around] = NOBODY
        elif role[row] == CONSUME and around >= 0 and number[around] != NOBODY:
            number[around] = row
    found = 0
    for row in range(len(start)):
        taken = number[row]
        if taken != NOBODY:
            ready = end[row] if taken == row else start[taken]
            number[row] = NOBODY
            if ready - start[row] >= shortest_ns:
                own_row[found], ready_ns[found] = row, ready
                taken_by[found] = NOBODY if taken == row else taken
                number[row] = found
                found += 1
    return found


@compiled
def link_calls(calls: tuple[Int64Array, Int64Array], role: Int8Array, call: Int32Array) -> None:
    """Write of each row the number of the call of a function that it waits for, or that makes its element.

    Args:
        calls: The row of each call, and the row of the element that a call in the background makes, -1 for others.
        role: Of every row.
        call: Of every row, -1 before; the result.
    """
    own_row, maker = calls
    for number in range(len(own_row)):
        if role[own_row[number]] == FUNCTION:
            call[own_row[number]] = number
    for number in range(len(maker)):
        if maker[number] >= 0:
            call[maker[number]] = number


@compiled
def find_makers(wanted: Int64Array, until: Int64Array, keys: Int64Array, done: Int64Array, found: Int64Array) -> None:
    """Write for each wanted key the place of the last maker with that key that was done by ``until``, -1 for none.

    Makers are sorted by key and then by when they were done.
    """
    for k in range(len(wanted)):
        low, high = 0, len(keys)
        while low < high:
            middle = (low + high) // 2
            if keys[middle] < wanted[k] or (keys[middle] == wanted[k] and done[middle] <= until[k]):
                low = middle + 1
            else:
                high = middle
        found[k] = low - 1 if low > 0 and keys[low - 1] == wanted[k] else -1


@compiled
def collect(
    line: tuple[Int64Array, Int64Array, Int32Array],
    roles: Int8Array,
    stages: Int32Array,
    columns: tuple[Int64Array, Int64Array, Int8Array, Int32Array, Int32Array, Int32Array],
) -> bool:
    """Write the events of a thread whose names have a role; say whether they come in the order that `nest` expects.

    Args:
        line: Start, duration and name of every event of the thread.
        roles, stages: Of every name.
        columns: Start, end, role, stage, name and number of the events with a role.
    """
    all_start, all_duration, all_names = line
    start, end, role, stage, name, number = columns
    row, is_ordered = 0, True
    for event in range(len(all_names)):
        index = all_names[event]
        if roles[index] != 0:
            start[row] = all_start[event]
            end[row] = all_start[event] + all_duration[event]
            role[row], stage[row], name[row], number[row] = roles[index], stages[index], index, event
            if row > 0 and (start[row] < start[row - 1] or (start[row] == start[row - 1] and end[row] > end[row - 1])):
                is_ordered = False
            row += 1
    return is_ordered


@compiled
def nest(first: int, after: int, start: Int64Array, end: Int64Array, parent: Int32Array) -> None:
    """Write the event around each event in rows ``[first, after)``.

    Ends are cut to that of the event around: clocks are rounded.
    """
    for row in range(first, after):
        around = np.int32(row - 1)
        while around >= first and end[around] <= start[row]:
            around = parent[around]
        if around < first:
            around = np.int32(-1)
        parent[row] = around
        if around >= 0:
            end[row] = min(end[row], end[around])


@compiled
def find_outermost(role: Int8Array, parent: Int32Array, out: Int64Array) -> int:
    """Write the rows of iterators' events that lie in no other event; return how many there are."""
    found = 0
    for row in range(len(role)):
        if role[row] == ITERATOR and parent[row] < 0:
            out[found] = row
            found += 1
    return found


@compiled
def find_slot(keys: Int64Array, numbers: Int32Array, key: int, factor: int) -> int:
    """Return where a key is in a hash table, or the free slot that it would take; its size is a power of two.

    Free slots have a negative number. The upper bits of the product say where to look. The factor is odd and drawn anew for
    each table, so that no file can be made whose keys all lie together.
    """
    slot = int(
        np.int64(((np.uint64(key) * np.uint64(factor)) >> np.uint64(32)) * np.uint64(len(keys)) >> np.uint64(32))
    )
    while numbers[slot] >= 0 and keys[slot] != key:
        slot = (slot + 1) & (len(keys) - 1)
    return slot


@compiled
def match_calls(
    rows: Int64Array,
    ids: tuple[Int64Array, BoolArray],
    columns: tuple[Int8Array, Int32Array],
    table: tuple[Int64Array, Int32Array, int],
    calls: Int64Array,
    runs: tuple[Int64Array, Int32Array],
) -> tuple[int, int]:
    """Match the runs of functions with their calls by the id that both carry.

    Args:
        rows: The rows of calls and runs, shape (n,).
        ids: Their ids, and which of them have one.
        columns: Of every row its role, and its stage: calls without one are left out.
        table: Keys, numbers and factor of an empty hash table that has room, see `find_slot`.
        calls: The result: the row of each call, shape (n_calls,).
        runs: The row of each run with a call, and the number of that; of several with one id it is the first.

    Returns:
        How many calls there are, and how many runs.
    """
    each_id, has_id = ids
    role, stage = columns
    keys, numbers, factor = table
    run_row, run_call = runs
    found, matched = 0, 0
    for k in range(len(rows)):
        row = rows[k]
        if has_id[k] and (role[row] == FUNCTION or role[row] == BACKGROUND_FUNCTION) and stage[row] >= 0:
            slot = find_slot(keys, numbers, each_id[k], factor)
            if numbers[slot] < 0:
                keys[slot], numbers[slot] = each_id[k], found
            calls[found] = row
            found += 1
    for k in range(len(rows)):
        row = rows[k]
        if has_id[k] and (role[row] == PROCESS or role[row] == DONE):
            number = numbers[find_slot(keys, numbers, each_id[k], factor)]
            if number >= 0:
                run_row[matched], run_call[matched] = row, number
                matched += 1
    return found, matched


@compiled
def end_calls(
    runs: tuple[Int64Array, Int32Array],
    calls: Int64Array,
    rows: tuple[Int64Array, Int8Array, Int32Array],
    end: Int64Array,
) -> None:
    """Write when calls in the background end, which is when their result is handed over, and the stage of every run.

    Args:
        runs: Their rows, and the numbers of their calls.
        calls: The rows of the calls.
        rows: The end of each row, its role, and its stage, which changes.
        end: Of each call, shape (n_calls,), changed in place.
    """
    run_row, run_call = runs
    row_end, role, stage = rows
    for k in range(len(run_row)):
        row, call = run_row[k], calls[run_call[k]]
        stage[row] = stage[call]
        if role[row] == DONE and role[call] == BACKGROUND_FUNCTION:
            end[run_call[k]] = row_end[row]


@compiled
def inherit(parent: Int32Array, stage: Int32Array) -> None:
    """Give every event without a stage that of the event around it."""
    for row in range(len(stage)):
        if stage[row] < 0 and parent[row] >= 0:
            stage[row] = stage[parent[row]]


@compiled
def find_stages(
    bounds: Int64Array,
    roles: tuple[int, int, int],
    columns: tuple[Int32Array, Int8Array],
    above: Int32Array,
    stage: Int32Array,
) -> None:
    """Write the stage of every event that an iterator's event tells it of: what lies in it, and what made its element.

    Args:
        bounds: Where each thread's rows begin, and where the last one's end.
        roles: Those of an iterator's event, of the making of an element, of a function that is started beside it.
        columns: Of every row the row around it, and its role.
        above: Of every stage the one that reads it.
        stage: The stage of an iterator's event, -1 for others; the result.
    """
    iterator, produce, background = roles
    parent, role = columns
    for thread in range(len(bounds) - 1):
        outermost = -1
        for row in range(bounds[thread], bounds[thread + 1]):
            around = parent[row]
            if role[row] == iterator:
                if around < 0:
                    outermost = row
                elif role[around] == produce:
                    stage[around] = above[stage[row]]
            elif role[row] == background and around < 0 and outermost >= 0:
                stage[row] = above[stage[outermost]]
    inherit(parent, stage)


# What a moment can be spent on; ops follow.
OWN, QUEUED, HIDDEN, OTHER_OPS, HANDOVER, FIRST_OP = 0, 1, 2, 3, 4, 5

# Kinds of tasks.
ON_THREAD, IN_CALL = 0, 1
DEEPEST = 60
TASKS = (8 * DEEPEST, 7)
LOOK_AROUND = 8


@compiled
def find_within(times: Int64Array, first: int, after: int, time: int) -> int:
    """Return the last place in ``[first, after)`` of sorted times that is not later than ``time``, or ``first - 1``."""
    low, high = first, after
    while low < high:
        middle = (low + high) // 2
        if times[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low - 1


@compiled
def walk(
    pieces: Int64Array,
    bounds: Int64Array,
    rows: tuple[Int64Array, Int64Array, Int32Array, Int8Array, Int32Array, Int32Array],
    types: Int32Array,
    links: tuple[Int32Array, Int32Array],
    waits: tuple[Int64Array, Int32Array, Int32Array],
    calls: tuple[Int32Array, Int64Array, Int64Array],
    runs: tuple[Int64Array, Int64Array, Int64Array],
    ends: tuple[Int64Array, Int64Array, Int64Array],
    beyond: Int32Array,
    spent: Int64Array,
    tasks: Int64Array,
) -> None:
    """Add to ``spent`` what every moment of the pieces was spent on.

    Args:
        pieces: Thread, start and end of each stretch of waiting, shape (n, 3).
        bounds: Where each thread's rows begin, and where the last one's end.
        rows: Start and end of each row, the row around it, its role, its stage, its name.
        types: The type of op of each name.
        links: Of each row the number of its wait for its stage's threads, and the function's call that it waits for
            or makes; -1 for none.
        waits: Until when each wait lasts, the row that made its element, the thread on which such rows lie.
        calls: Stage, start and end of each call of a function; the end is -1 if it is unknown.
        runs: Where each call's runs on threads begin (one more than there are calls), their rows, and their starts.
        ends: Where each stage's calls begin in the order of their ends, those calls, and their ends.
        beyond: Of each stage the thread that its function waits for, -1 for none.
        spent: ns by stage (the last one for none) and by what, changed in place, shape (n_stages + 1, n_whats).
        tasks: Room to work in, shape TASKS.
    """
    for piece in range(len(pieces)):
        put(tasks, 0, ON_THREAD, pieces[piece, 0], pieces[piece, 1], pieces[piece, 2], NOBODY, 0, 0)
        left = 1
        while left > 0:
            left -= 1
            begin, stop = tasks[left, 2], tasks[left, 3]
            if begin >= stop:
                continue
            if tasks[left, 6] >= DEEPEST or left + 4 >= len(tasks):
                spent[tasks[left, 4], HIDDEN] += stop - begin
            elif tasks[left, 0] == IN_CALL:
                left = follow_call(tasks, left, bounds, rows[1], runs, beyond, spent)
            else:
                left = follow_thread(tasks, left, bounds, rows, types, links, waits, calls, ends, spent)


# Each of these takes the first part off the task at ``at``, says what it was spent on or puts it into tasks of its own
# behind that one, and returns how many tasks are left then; the arguments are those of `walk`.


@compiled
def follow_call(
    tasks: Int64Array,
    at: int,
    bounds: Int64Array,
    end: Int64Array,
    runs: tuple[Int64Array, Int64Array, Int64Array],
    beyond: Int32Array,
    spent: Int64Array,
) -> int:
    """Follow a call of a function onto the thread that runs it."""
    first_run, run_row, run_start = runs
    call, begin, stop, owner, depth = tasks[at, 1], tasks[at, 2], tasks[at, 3], tasks[at, 4], tasks[at, 6]
    first, after = first_run[call], first_run[call + 1]
    last = find_within(run_start, first, after, begin)
    until = min(stop, run_start[last + 1]) if last + 1 < after else stop
    running = -1
    for back in range(last, max(first, last - LOOK_AROUND + 1) - 1, -1):
        if end[run_row[back]] > begin:
            running = run_row[back]
            until = min(stop, end[running])
            break
    tasks[at, 2] = until
    if running < 0 and first == after:
        spent[owner, OTHER_OPS] += until - begin
        return at + 1
    thread = find_within(bounds, 0, len(bounds), running) if running >= 0 else int(beyond[owner])
    if thread < 0:
        spent[owner, QUEUED] += until - begin
        return at + 1
    put(tasks, at + 1, ON_THREAD, thread, begin, until, owner, 0, depth + 1)
    return at + 2


@compiled
def follow_thread(
    tasks: Int64Array,
    at: int,
    bounds: Int64Array,
    rows: tuple[Int64Array, Int64Array, Int32Array, Int8Array, Int32Array, Int32Array],
    types: Int32Array,
    links: tuple[Int32Array, Int32Array],
    waits: tuple[Int64Array, Int32Array, Int32Array],
    calls: tuple[Int32Array, Int64Array, Int64Array],
    ends: tuple[Int64Array, Int64Array, Int64Array],
    spent: Int64Array,
) -> int:
    """Find the innermost event of a thread, or that it rests."""
    start, end, around, role, stage, name = rows
    wait, call_of = links
    thread, begin, stop, owner, depth = tasks[at, 1], tasks[at, 2], tasks[at, 3], tasks[at, 4], tasks[at, 6]
    first, after = bounds[thread], bounds[thread + 1]
    last = find_within(start, first, after, begin)
    until = min(stop, start[last + 1]) if last + 1 < after else stop
    row = last if last >= first else -1
    while row >= 0 and end[row] <= begin:
        row = around[row]
    if row < 0:
        return rest(tasks, at, until, last >= first, calls, ends, spent)
    until = min(until, end[row])
    own = stage[row] if stage[row] >= 0 else owner
    if wait[row] >= 0 and waits[0][wait[row]] > begin:
        until = min(until, waits[0][wait[row]])
        if role[row] == ITERATOR:
            return follow_wait(tasks, at, until, own, bounds, end, (wait[row], call_of), waits, calls, spent)
    tasks[at, 2] = until
    if role[row] == FUNCTION and call_of[row] >= 0:
        put(tasks, at + 1, IN_CALL, call_of[row], begin, until, own, 0, depth + 1)
        return at + 2
    if role[row] == OPERATION:
        spent[own, FIRST_OP + types[name[row]]] += until - begin
    elif role[row] == PROCESS or role[row] == DONE:
        spent[own, OTHER_OPS] += until - begin
    elif role[row] == WAIT or role[row] == OUTER_WAIT:
        spent[NOBODY, HANDOVER] += until - begin
    else:
        spent[own, OWN] += until - begin
    return at + 1


@compiled
def rest(
    tasks: Int64Array,
    at: int,
    until: int,
    has_worked: bool,
    calls: tuple[Int32Array, Int64Array, Int64Array],
    ends: tuple[Int64Array, Int64Array, Int64Array],
    spent: Int64Array,
) -> int:
    """Say why a thread rests: for want of a free call of the function, or because nothing woke it yet."""
    _, call_start, call_end = calls
    first_end, ended, end_time = ends
    begin, owner, is_unseen, depth = tasks[at, 2], tasks[at, 4], tasks[at, 5], tasks[at, 6]
    if owner >= 0 and not is_unseen:
        place = find_within(end_time, first_end[owner], first_end[owner + 1], begin) + 1
        for ahead in range(place, min(place + LOOK_AROUND, first_end[owner + 1])):
            busy = ended[ahead]
            if call_start[busy] <= begin:
                tasks[at, 2] = min(until, call_end[busy])
                put(tasks, at + 1, IN_CALL, busy, begin, tasks[at, 2], owner, 0, depth + 1)
                return at + 2
    tasks[at, 2] = until
    spent[owner, HIDDEN if owner < 0 or is_unseen or not has_worked else QUEUED] += until - begin
    return at + 1


@compiled
def follow_wait(
    tasks: Int64Array,
    at: int,
    until: int,
    own: int,
    bounds: Int64Array,
    end: Int64Array,
    links: tuple[int, Int32Array],
    waits: tuple[Int64Array, Int32Array, Int32Array],
    calls: tuple[Int32Array, Int64Array, Int64Array],
    spent: Int64Array,
) -> int:
    """Follow a stage that waits for its own threads to the one that makes its element, and to the call that finishes it."""
    number, call_of = links
    _, source, source_thread = waits
    call_stage, _, call_end = calls
    begin, depth = tasks[at, 2], tasks[at, 6]
    made, thread = source[number], source_thread[number]
    tasks[at, 2] = until
    if made < 0 and thread < 0:
        spent[own, HIDDEN] += until - begin
        return at + 1
    if made < 0:
        put(tasks, at + 1, ON_THREAD, thread, begin, until, own, 1, depth + 1)
        return at + 2
    finished, call, left = end[made], call_of[made], at + 1
    if call >= 0:
        finished = max(finished, call_end[call])
        put(tasks, left, IN_CALL, call, max(begin, end[made]), min(until, finished), call_stage[call], 0, depth + 1)
        left += 1
    spent[own, QUEUED] += max(0, until - max(begin, finished))
    put(
        tasks,
        left,
        ON_THREAD,
        find_within(bounds, 0, len(bounds), made),
        begin,
        min(until, end[made]),
        own,
        0,
        depth + 1,
    )
    return left + 1


@compiled
def put(
    tasks: Int64Array, at: int, kind: int, where: int, begin: int, stop: int, owner: int, is_unseen: int, depth: int
) -> None:
    tasks[at, 0], tasks[at, 1], tasks[at, 2], tasks[at, 3] = kind, where, begin, stop
    tasks[at, 4], tasks[at, 5], tasks[at, 6] = owner, is_unseen, depth
