"""Tasks in processes of this machine, for work that fits into a function call: reading traces."""

import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from pipeline_lab.errors import RunFailedError
from pipeline_lab.trace.parallel import keep_to_one_core

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST_ATTEMPTS = 3
"""A task that is lost so often is taken to be the reason."""
LOST = (
    "A task was lost {times} times with the process or machine that did it; it may need more memory than there is for "
    "each. Do fewer at a time."
)


def usable_cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread_over_processes(
    task: Callable[[Item], Result], items: Sequence[Item], workers: int
) -> Iterator[tuple[int, Result]]:
    """Do a task for every item, so many at a time; yield each item's place with its result as they end.

    A process that is lost breaks the pool that it is in, so what was under way or waiting there is done again in a new one.

    Raises:
        RunFailedError: A task was lost three times.
    """
    left, lost = dict(enumerate(items)), Counter[int]()
    while left:
        with ProcessPoolExecutor(
            max(1, min(workers, len(left))), multiprocessing.get_context("spawn"), keep_to_one_core
        ) as pool:
            asked = {pool.submit(task, item): place for place, item in left.items()}
            for place, result in _answers(asked):
                del left[place]
                yield place, result
        lost.update(left.keys())
        if any(times >= MOST_ATTEMPTS for times in lost.values()):
            raise RunFailedError(LOST.format(times=MOST_ATTEMPTS))


def _answers(asked: "dict[Future[Result], int]") -> Iterator[tuple[int, Result]]:
    """Yield what comes back, until all has, or the pool is broken."""
    waiting = set(asked)
    while waiting:
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            try:
                result = future.result()
            except BrokenProcessPool:
                continue
            yield asked[future], result
