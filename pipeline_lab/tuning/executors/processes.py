"""Tasks in processes of this machine, for work that fits into a function call: reading traces."""

import contextlib
import multiprocessing
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
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


def spread_over_processes(
    task: Callable[[Item], Result], items: Sequence[Item], workers: int
) -> Iterator[tuple[int, Result]]:
    """Do a task for every item, so many at a time; yield each item's place with its result as they end.

    A process that is lost breaks the pool that it is in, so what was under way there is done again in a new one.

    Raises:
        RunFailedError: A task was lost three times.
    """
    waiting, times_lost = deque(enumerate(items)), Counter[int]()
    while waiting:
        at_once = max(1, min(workers, len(waiting)))
        with ProcessPoolExecutor(at_once, multiprocessing.get_context("spawn"), keep_to_one_core) as pool:
            lost = yield from _answers(pool, task, waiting, at_once)
        waiting.extendleft(lost)
        times_lost.update(place for place, _ in lost)
        if any(times_lost[place] >= MOST_ATTEMPTS for place, _ in lost):
            raise RunFailedError(LOST.format(times=MOST_ATTEMPTS))


def _answers(
    pool: ProcessPoolExecutor, task: Callable[[Item], Result], waiting: deque[tuple[int, Item]], at_once: int
) -> Generator[tuple[int, Result], None, list[tuple[int, Item]]]:
    """Yield what comes back, until all has, or the pool is broken; return what was under way in it by then.

    No more is handed over than there are processes, for a broken pool does not say what had begun.
    """
    lost: list[tuple[int, Item]] = []
    running: dict[Future[Result], tuple[int, Item]] = {}
    while True:
        with contextlib.suppress(BrokenProcessPool):  # what is under way says so too
            while waiting and len(running) < at_once:
                running[pool.submit(task, waiting[0][1])] = waiting[0]
                waiting.popleft()
        if not running:
            return lost
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            place, item = running.pop(future)
            try:
                result = future.result()
            except BrokenProcessPool:
                lost.append((place, item))
            else:
                yield place, result
