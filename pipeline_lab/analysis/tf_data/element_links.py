"""Which call of a stage made which element: calls of the user's function, handovers between threads, and buffers."""

import secrets

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.intervals import IntArray, find_touching
from pipeline_lab.analysis.tf_data import kernels
from pipeline_lab.analysis.tf_data.iterator_places import NO_STAGE
from pipeline_lab.analysis.tf_data.kinds import EventRole, is_any, is_asynchronous
from pipeline_lab.analysis.tf_data.threads import IndexArray, Threads
from pipeline_lab.data_classes import dataclass

UNFINISHED = -1
NONE = -1


@dataclass(frozen=True, eq=False)
class Functions:
    """Calls of functions, shape (n_calls,), and their runs on threads.

    Attributes:
        stage: Of every row of the threads the stage that it works for, ``NO_STAGE`` if none.
        row: The row of each call.
        maker: The row of the element that a call in the background turns into another, -1 for other calls.
        call_stage: The stage that makes it.
        start_ns, end_ns: From the call until the result was there, ``UNFINISHED`` if that was not recorded.
        first_run: Where each call's runs begin in ``runs``, shape (n_calls + 1,).
        runs: Rows of all runs, by call and start.
    """

    stage: IndexArray
    row: IntArray
    maker: IntArray
    call_stage: IndexArray
    start_ns: IntArray
    end_ns: IntArray
    first_run: IntArray
    runs: IntArray


def find_functions(threads: Threads) -> Functions:
    """Match the calls of functions with their runs: both carry the call's id."""
    stage = _stages_of_rows(threads)
    rows = threads.rows(EventRole.FUNCTION, EventRole.BACKGROUND_FUNCTION, EventRole.PROCESS, EventRole.DONE)
    row, runs, call = _match(threads, rows, stage)
    in_background = threads.role[row] == EventRole.BACKGROUND_FUNCTION
    maker = np.full(len(row), NONE, np.int64)
    maker[in_background] = _elements_of(threads, row[in_background])
    # A call in the background ends with the event that hands over its result, another one when it returns.
    end = threads.end_ns[row]
    end[in_background] = UNFINISHED
    kernels.end_calls((runs, call), row, (threads.end_ns, threads.role, stage), end)
    kernels.inherit(threads.parent, stage)
    first_run, runs = _by_call(threads, runs, call, len(row))
    return Functions(stage, row, maker, stage[row], threads.start_ns[row], end, first_run, runs)


def _match(threads: Threads, rows: IntArray, stage: IndexArray) -> tuple[IntArray, IntArray, IndexArray]:
    """Return the rows of the calls of functions that a stage makes, those of their runs, and the number of each run's call."""
    is_call = is_any(threads.role[rows], EventRole.FUNCTION, EventRole.BACKGROUND_FUNCTION)
    most = int(np.count_nonzero(is_call))
    calls, runs, call = (
        np.empty(most, np.int64),
        np.empty(len(rows) - most, np.int64),
        np.empty(len(rows) - most, np.int32),
    )
    size = 1 << (2 * most).bit_length()
    table = (np.empty(size, np.int64), np.full(size, -1, np.int32), secrets.randbits(62) | 1)
    ids = threads.ints(rows, "id")
    found, matched = kernels.match_calls(rows, ids, (threads.role, stage), table, calls, (runs, call))
    return calls[:found], runs[:matched], call[:matched]


def _by_call(threads: Threads, runs: IntArray, call: IndexArray, calls: int) -> tuple[IntArray, IntArray]:
    """Return where each call's runs begin, shape (n_calls + 1,), and all runs by call and start."""
    order = np.argsort(threads.start_ns[runs], kind="stable")  # merges what is in order on each thread
    ends, ordered = np.zeros(calls + 1, np.int64), np.empty(len(runs), np.int64)
    kernels.sort_by_number(runs[order], call[order], ends, ordered)
    return np.append(0, ends[:-1]), ordered


def _stages_of_rows(threads: Threads) -> IndexArray:
    """Return the stage of every row that an iterator's event tells it of: what lies in it, and what made its element.

    They are written where the stages of the iterators' events lie, which stay as they are: a column of millions less.
    """
    stage = threads.place
    kernels.find_stages(
        threads.bounds,
        (int(EventRole.ITERATOR), int(EventRole.PRODUCE), int(EventRole.BACKGROUND_FUNCTION)),
        (threads.parent, threads.role),
        threads.places.above,
        stage,
    )
    return stage


def _elements_of(threads: Threads, calls: IntArray) -> IntArray:
    """Return the row of the element that each call in the background is given, -1 if there is none.

    TensorFlow before 2.4 or so wrote nothing around the two: there it is the outermost iterator's event just before.
    """
    around = threads.parent[calls].astype(np.int64)
    outer = threads.outermost
    if not len(outer):
        return around
    before = outer[np.maximum(np.searchsorted(outer, calls) - 1, 0)]
    is_there = (before < calls) & (threads.thread_of(before) == threads.thread_of(calls))
    return np.where(around >= 0, around, np.where(is_there, before, NONE))


SHORT_NS = 2_000
"""A stage that gets its element sooner has not waited for it."""
_ANY = -1  # the id of an element that TensorFlow did not number
_STAGES = np.uint64(1_000_003)


@dataclass(frozen=True, eq=False)
class Links:
    """The calls that wait for their stage's own threads, and the calls of functions; of rows without one ``NONE``.

    Attributes:
        wait: The number of each row's wait, shape (n_rows,).
        call: The call of a function that each row waits for, or that makes the row's element, shape (n_rows,).
        row: The row of each wait, shape (n_waits,).
        ready_ns: Until when it lasts.
        source: The row that made the element, ``NONE`` if that is not in the trace.
        source_thread: In that case the thread that makes such elements, ``NONE`` if no thread is known to.
    """

    wait: IndexArray
    call: IndexArray
    row: IntArray
    ready_ns: IntArray
    source: IndexArray
    source_thread: IndexArray


def find_links(threads: Threads, functions: Functions, moments: IntArray) -> Links:
    """Find what every stage with threads of its own waited for.

    Args:
        threads: The trace's events.
        functions: The calls of functions.
        moments: When the job waited: only for calls at these moments is the maker of their element looked up.
    """
    call = _link_calls(threads, functions)
    wait, row, taken_by, ready_ns = _find_waiting(threads)
    source, source_thread = (np.full(len(row), NONE, np.int32) for _ in range(2))
    followed = find_touching(moments, threads.start_ns[row], ready_ns)
    if len(followed):
        source[followed], source_thread[followed] = _find_sources(
            threads, functions, call, row[followed], ready_ns[followed], taken_by[followed]
        )
    return Links(wait, call, row, ready_ns, source, source_thread)


def _find_sources(
    threads: Threads, functions: Functions, calls: IndexArray, waiting: IntArray, ready_ns: IntArray, taken: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the row that made each waiting row's element, or else a thread that makes such elements."""
    stage = functions.stage[waiting].astype(np.int64)
    is_read = np.zeros(len(threads.places.places), np.bool_)
    is_read[stage] = True
    makers, maker_stage = _find_makers(threads, functions, is_read)
    done = threads.end_ns[makers]
    call = calls[makers]
    in_call = call >= 0
    done[in_call] = np.maximum(done[in_call], functions.end_ns[call[in_call]])
    element = _elements(threads, taken)
    made = np.where(threads.role[makers] == EventRole.PRODUCE, makers, NONE)
    numbered = element != _ANY
    found = np.full(len(waiting), NONE, np.int64)
    until = ready_ns + SHORT_NS
    if numbered.any():
        found[numbered] = _last_done(
            _key(stage[numbered], element[numbered]), until[numbered], _key(maker_stage, _elements(threads, made)), done
        )
    if not numbered.all():  # an interleave, TensorFlow before 2.4: the last one that was done when the wait was over
        found[~numbered] = _last_done(stage[~numbered], until[~numbered], maker_stage, done)
    is_found = found != NONE
    source, thread = np.full(len(waiting), NONE, np.int64), np.full(len(waiting), NONE, np.int64)
    source[is_found] = makers[found[is_found]]
    thread[~is_found] = _threads_of(threads, makers, maker_stage, stage[~is_found])
    return source, thread


def _link_calls(threads: Threads, functions: Functions) -> IndexArray:
    """Return of each row the call of a function that it waits for, or that makes its element."""
    call = np.full(threads.count, NONE, np.int32)
    kernels.link_calls((functions.row, functions.maker), threads.role, call)
    return call


def _find_waiting(threads: Threads) -> tuple[IndexArray, IntArray, IntArray, IntArray]:
    """Return of every row the number of its wait, and of each wait its row, the row that takes its element, and until when it lasts.

    ``NONE`` stands for no wait, and for an element that is taken as the call returns.
    """
    number = np.empty(threads.count, np.int32)
    row, taken_by, ready_ns = (np.empty(threads.count_of(EventRole.ITERATOR), np.int64) for _ in range(3))
    found = kernels.find_waiting(
        (threads.start_ns, threads.end_ns, threads.parent, threads.role, threads.place),
        np.array([is_asynchronous(place.name) for place in threads.places.places], np.bool_),
        SHORT_NS,
        number,
        (row, taken_by, ready_ns),
    )
    return number, row[:found], taken_by[:found], ready_ns[:found]


def _elements(threads: Threads, rows: IntArray) -> IntArray:
    """Return the ids of the elements that rows take or make, ``_ANY`` where there is no row or no id."""
    element = np.full(len(rows), _ANY, np.int64)
    there = np.flatnonzero(rows != NONE)
    ids, known = threads.ints(rows[there], "element_id")
    element[there[known]] = ids[known]
    return element


def _find_makers(threads: Threads, functions: Functions, is_read: NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Return the rows that make elements for these stages, and the stage that each makes one for.

    Where a stage's own are not recorded these are the outermost calls of the stage below it.
    """
    makers = threads.rows(EventRole.PRODUCE)
    stage = functions.stage[makers]
    is_maker = is_read[stage] & (stage != NO_STAGE)
    makers, stage = makers[is_maker], stage[is_maker]
    outer = threads.outermost
    above = threads.places.above[threads.place[outer]]
    silent = is_read[above] & (above != NO_STAGE) & ~np.isin(above, stage)
    both = np.concatenate((makers, outer[silent])), np.concatenate((stage, above[silent]))
    return both[0], both[1].astype(np.int64)


def _last_done(wanted: IntArray, until: IntArray, keys: IntArray, done: IntArray) -> IntArray:
    """Return for each wanted key the index of the last maker with that key that was done in time, or ``NONE``."""
    order = np.lexsort((done, keys))
    found = np.empty(len(wanted), np.int64)
    kernels.find_makers(wanted, until, keys[order], done[order], found)
    return np.where(found == NONE, NONE, order[found]) if len(order) else found


def _threads_of(threads: Threads, makers: IntArray, maker_stage: IntArray, stage: IntArray) -> IntArray:
    """Return a thread that makes elements for each of these stages, ``NONE`` where none is known to."""
    thread = np.full(len(stage), NONE, np.int64)
    for number in np.unique(stage).tolist():
        first = makers[maker_stage == number][:1]
        thread[stage == number] = threads.thread_of(first)[0] if len(first) else NONE
    return thread


def _key(stage: IntArray, element: IntArray) -> IntArray:
    """Mix stage and element into one number; ids of different iterators of a stage come from one clock."""
    return (element.view(np.uint64) * _STAGES + stage.astype(np.uint64)).view(np.int64)
