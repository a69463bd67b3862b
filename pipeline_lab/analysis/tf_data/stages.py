"""The stages of the pipeline that ran, and what each of them did."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from pipeline_lab.analysis.intervals import IntArray
from pipeline_lab.analysis.tf_data.kinds import Role
from pipeline_lab.analysis.tf_data.places import Place
from pipeline_lab.analysis.tf_data.results import Stage, Tally
from pipeline_lab.analysis.tf_data.settings import NOT_TOLD, Calls, dataset_of, element_bytes, origin_of
from pipeline_lab.analysis.tf_data.threads import Threads
from pipeline_lab.analysis.tf_data.work import Work


def describe_stages(
    threads: Threads, rows: list[IntArray], calls: list[Calls], work: Work, observed_ns: int
) -> tuple[Stage, ...]:
    """Describe every stage of one trace, in the order of the tree.

    Args:
        threads: The trace's events.
        rows: The rows of each stage's calls.
        calls: Those of each stage whose stats are read.
        work: What each stage did.
        observed_ns: Length of the window.
    """
    return tuple(
        replace(
            _describe(number, place, threads, own_rows, own_calls, observed_ns),
            self_ns=int(work.self_ns[number]),
            blocked_ns=int(work.blocked_ns[number]),
            function_calls=int(work.function_calls[number]),
            function_on_thread_ns=int(work.on_thread_ns[number]),
            function_latency=work.latency[number],
            operations=work.operations[number],
        )
        for number, (place, own_rows, own_calls) in enumerate(zip(threads.places.places, rows, calls, strict=True))
    )


def calls_by_stage(threads: Threads) -> list[IntArray]:
    """Return the rows of each stage's calls."""
    rows = threads.rows(Role.ITERATOR)
    place = threads.place[rows]
    order = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[order], np.arange(len(threads.places.places) + 1))
    return [rows[order[first:after]] for first, after in pairwise(bounds.tolist())]


def _describe(number: int, place: Place, threads: Threads, rows: IntArray, calls: Calls, observed_ns: int) -> Stage:
    dataset = dataset_of(calls)
    buffered = calls.ints("buffered_elements")
    return Stage(
        number=number,
        parent=place.parent,
        name=place.name,
        node=dataset,
        path=place.path,
        origin=origin_of(place.name, dataset),
        iterators=_count_iterators(threads, calls, rows),
        observed_ns=observed_ns,
        calls=len(rows),
        elements=len(rows) - _count_ends(threads, rows),
        self_ns=0,
        parallelism=calls.last("parallelism"),
        cycle_length=calls.last("cycle_length"),
        autotuned=calls.claim("autotune"),
        deterministic=calls.claim("deterministic"),
        buffer_limit=_first_told(calls.last("buffer_limit"), calls.last("buffer_size")),
        buffered=tally(buffered[buffered != NOT_TOLD]),
        empty_calls=int((buffered == 0).sum()),
        bytes_per_element=element_bytes(calls),
    )


def tally(values: IntArray) -> Tally:
    numbers = values.astype(np.float64)
    return Tally(len(numbers), float(numbers.sum()), float((numbers * numbers).sum()))


def _count_ends(threads: Threads, rows: IntArray) -> int:
    """Count the calls that found the end of a file or an epoch.

    An iterator is at its end when another one of its stage begins after its last call; that one was answered with nothing.
    """
    if not len(rows):
        return 0
    order = np.lexsort((threads.start_ns[rows], threads.name[rows]))
    name, start = threads.name[rows][order], threads.start_ns[rows][order]
    first = np.flatnonzero(np.diff(name, prepend=-1))
    last = np.append(first[1:], len(name)) - 1
    return int((start[last] < start[first].max()).sum())


def _count_iterators(threads: Threads, calls: Calls, rows: IntArray) -> int:
    """Count the iterators of a stage: by their ids, and by their names where not every call's id is read."""
    ids = calls.ints("id")
    return max(len(np.unique(ids[ids != NOT_TOLD])), len(np.unique(threads.name[rows])))


def _first_told(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
