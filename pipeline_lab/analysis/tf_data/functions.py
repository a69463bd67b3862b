"""The calls of the user's functions: who called them, when their result was there, which threads ran them."""

from dataclasses import dataclass

import numpy as np

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.tf_data import kernels
from pipeline_lab.analysis.tf_data.iterator_places import NO_STAGE
from pipeline_lab.analysis.tf_data.kinds import Role
from pipeline_lab.analysis.tf_data.threads import IndexArray, Threads

UNFINISHED = -1


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
    row = threads.rows(Role.FUNCTION, Role.BACKGROUND_FUNCTION)
    ids, known = threads.ints(row, "id")
    known &= stage[row] != NO_STAGE
    order = np.argsort(ids[known], kind="stable")
    row, ids = row[known][order], ids[known][order]
    in_background = threads.role[row] == Role.BACKGROUND_FUNCTION
    maker = np.where(in_background, _elements_of(threads, row), -1)
    # A call in the background ends with the event that hands over its result, another one when it returns.
    end = np.where(in_background, UNFINISHED, threads.end_ns[row])
    done, call = _calls_of(threads, threads.rows(Role.DONE), ids)
    in_time = in_background[call]
    end[call[in_time]] = threads.end_ns[done[in_time]]
    process, process_call = _calls_of(threads, threads.rows(Role.PROCESS), ids)
    runs, run_call = np.concatenate((process, done)), np.concatenate((process_call, call))
    order = np.lexsort((threads.start_ns[runs], run_call))
    runs, run_call = runs[order], run_call[order]
    stage[runs] = stage[row][run_call]
    kernels.inherit(threads.parent, stage)
    first_run = np.searchsorted(run_call, np.arange(len(row) + 1)).astype(np.int64)
    return Functions(stage, row, maker, stage[row], threads.start_ns[row], end, first_run, runs)


def _stages_of_rows(threads: Threads) -> IndexArray:
    """Return the stage of every row that an iterator's event tells it of: what lies in it, and what made its element."""
    stage = np.empty(threads.count, np.int32)
    kernels.find_stages(
        threads.bounds,
        (int(Role.ITERATOR), int(Role.PRODUCE), int(Role.BACKGROUND_FUNCTION)),
        (threads.parent, threads.role, threads.place),
        threads.places.above,
        stage,
    )
    return stage


def _elements_of(threads: Threads, calls: IntArray) -> IntArray:
    """Return the row of the element that each call in the background is given, -1 if there is none.

    TensorFlow before 2.4 or so wrote nothing around the two: there it is the outermost iterator's event just before.
    """
    around = threads.parent[calls].astype(np.int64)
    outer = np.flatnonzero((threads.role == Role.ITERATOR) & (threads.parent < 0))
    if not len(outer):
        return around
    before = outer[np.maximum(np.searchsorted(outer, calls) - 1, 0)]
    is_there = (before < calls) & (threads.thread_of(before) == threads.thread_of(calls))
    return np.where(around >= 0, around, np.where(is_there, before, -1))


def _calls_of(threads: Threads, rows: IntArray, ids: IntArray) -> tuple[IntArray, IntArray]:
    """Return those rows that carry one of the sorted ids, and whose each is."""
    if not len(ids):
        return rows[:0], rows[:0]
    found, known = threads.ints(rows, "id")
    call = np.minimum(np.searchsorted(ids, found), len(ids) - 1)
    known &= ids[call] == found
    return rows[known], call[known]
