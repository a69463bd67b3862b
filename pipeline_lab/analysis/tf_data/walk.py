"""The compiled walk behind the critical path: what each moment of a wait was spent on, followed from thread to thread.

A moment on a thread belongs to the innermost event there. A stage that waits for its own threads leads to the thread
that made the element; a function leads to the threads that ran it. Row numbers are those of `threads.Threads`; -1
stands for none.
"""

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.trace.compiled import compiled

Int64Array = NDArray[np.int64]
Int32Array = NDArray[np.int32]
Int8Array = NDArray[np.int8]

# Roles of `kinds.Role` that the walk tells apart.
WAIT, ITERATOR, FUNCTION, PROCESS, DONE, OPERATION, OUTER_WAIT = 1, 2, 5, 7, 8, 9, 10

# What a moment can be spent on; ops follow.
OWN, QUEUED, HIDDEN, OTHER_OPS, HANDOVER, FIRST_OP = 0, 1, 2, 3, 4, 5

# Kinds of tasks.
ON_THREAD, IN_CALL = 0, 1
DEEPEST = 60
LOOK_AROUND = 8
NOBODY = -1


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
def walk(  # noqa: C901  (one loop over tasks: compiled helpers that take the columns triple its time)
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
    """
    start, end, around, role, stage, name = rows
    wait, call_of = links
    ready, source, source_thread = waits
    call_stage, call_start, call_end = calls
    first_run, run_row, run_start = runs
    first_end, ended, end_time = ends
    tasks = np.empty((8 * DEEPEST, 7), np.int64)
    for piece in range(len(pieces)):
        put(tasks, 0, ON_THREAD, pieces[piece, 0], pieces[piece, 1], pieces[piece, 2], NOBODY, 0, 0)
        left = 1
        while left > 0:
            left -= 1
            kind, where, begin, stop = tasks[left, 0], tasks[left, 1], tasks[left, 2], tasks[left, 3]
            owner, is_unseen, depth = tasks[left, 4], tasks[left, 5], tasks[left, 6]
            if begin >= stop:
                continue
            if depth >= DEEPEST or left + 4 >= len(tasks):
                spent[owner, HIDDEN] += stop - begin
                continue
            if kind == IN_CALL:
                first, after = first_run[where], first_run[where + 1]
                last = find_within(run_start, first, after, begin)
                until = min(stop, run_start[last + 1]) if last + 1 < after else stop
                running = -1
                for back in range(last, max(first, last - LOOK_AROUND + 1) - 1, -1):
                    if end[run_row[back]] > begin:
                        running = run_row[back]
                        until = min(stop, end[running])
                        break
                tasks[left, 2] = until
                left += 1
                if running >= 0:
                    thread = find_within(bounds, 0, len(bounds), running)
                    put(tasks, left, ON_THREAD, thread, begin, until, owner, 0, depth + 1)
                    left += 1
                elif first == after:
                    spent[owner, OTHER_OPS] += until - begin
                elif beyond[owner] >= 0:
                    put(tasks, left, ON_THREAD, beyond[owner], begin, until, owner, 0, depth + 1)
                    left += 1
                else:
                    spent[owner, QUEUED] += until - begin
                continue
            first, after = bounds[where], bounds[where + 1]
            last = find_within(start, first, after, begin)
            until = min(stop, start[last + 1]) if last + 1 < after else stop
            row = last if last >= first else -1
            while row >= 0 and end[row] <= begin:
                row = around[row]
            if row >= 0:
                until = min(until, end[row])
                if wait[row] >= 0 and ready[wait[row]] > begin:
                    until = min(until, ready[wait[row]])
            tasks[left, 2] = until
            left += 1
            if row < 0:
                # The thread rests: for want of a free call of the function, or because nothing woke it yet.
                busy = -1
                if owner >= 0 and not is_unseen:
                    place = find_within(end_time, first_end[owner], first_end[owner + 1], begin) + 1
                    for ahead in range(place, min(place + LOOK_AROUND, first_end[owner + 1])):
                        if call_start[ended[ahead]] <= begin:
                            busy = ended[ahead]
                            break
                if busy >= 0:
                    until = min(until, call_end[busy])
                    tasks[left - 1, 2] = until
                    put(tasks, left, IN_CALL, busy, begin, until, owner, 0, depth + 1)
                    left += 1
                elif owner < 0 or is_unseen or last < first:
                    spent[owner, HIDDEN] += until - begin
                else:
                    spent[owner, QUEUED] += until - begin
                continue
            own = stage[row] if stage[row] >= 0 else owner
            if role[row] == ITERATOR and wait[row] >= 0 and ready[wait[row]] > begin:
                made, thread = source[wait[row]], source_thread[wait[row]]
                if made < 0 and thread < 0:
                    spent[own, HIDDEN] += until - begin
                    continue
                if made < 0:
                    put(tasks, left, ON_THREAD, thread, begin, until, own, 1, depth + 1)
                    left += 1
                    continue
                finished, call = end[made], call_of[made]
                if call >= 0:
                    finished = max(finished, call_end[call])
                    put(
                        tasks,
                        left,
                        IN_CALL,
                        call,
                        max(begin, end[made]),
                        min(until, finished),
                        call_stage[call],
                        0,
                        depth + 1,
                    )
                    left += 1
                spent[own, QUEUED] += max(0, until - max(begin, finished))
                thread = find_within(bounds, 0, len(bounds), made)
                put(tasks, left, ON_THREAD, thread, begin, min(until, end[made]), own, 0, depth + 1)
                left += 1
            elif role[row] == FUNCTION and call_of[row] >= 0:
                put(tasks, left, IN_CALL, call_of[row], begin, until, own, 0, depth + 1)
                left += 1
            elif role[row] == OPERATION:
                spent[own, FIRST_OP + types[name[row]]] += until - begin
            elif role[row] == PROCESS or role[row] == DONE:
                spent[own, OTHER_OPS] += until - begin
            elif role[row] == WAIT or role[row] == OUTER_WAIT:
                spent[NOBODY, HANDOVER] += until - begin
            else:
                spent[own, OWN] += until - begin


@compiled
def put(
    tasks: Int64Array, at: int, kind: int, where: int, begin: int, stop: int, owner: int, is_unseen: int, depth: int
) -> None:
    tasks[at, 0], tasks[at, 1], tasks[at, 2], tasks[at, 3] = kind, where, begin, stop
    tasks[at, 4], tasks[at, 5], tasks[at, 6] = owner, is_unseen, depth
