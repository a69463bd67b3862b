"""Tasks that fit into a function call, such as reading a trace, spread over processes of this machine."""

import contextlib
import multiprocessing
import os
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import TypeAlias, TypeVar

from pipeline_lab.analysis.diagnosis.packing import pack, unpack
from pipeline_lab.collecting import collect_rarely
from pipeline_lab.errors import RunFailedError
from pipeline_lab.runs.launch.runtime import die_with
from pipeline_lab.trace.parallel import keep_to_one_core

Item = TypeVar("Item")
Result = TypeVar("Result")
Share: TypeAlias = tuple[int, Sequence[Item]]
"""What a process is given at a time: items that follow one another, and the place of the first."""

MOST_ATTEMPTS = 3
"""A task that is lost this often is assumed to be the cause."""
LOST = (
    "A task was lost {times} times with the process or machine that did it; it may need more memory than there is for "
    "each. Do fewer at a time."
)
MOST_AT_A_TIME = 20
LEAST_SHARES = 8
"""For each process, so that all of them end at about the same time."""


def spread_over_processes(
    task: Callable[[Item], Result], items: Sequence[Item], workers: int
) -> Iterator[tuple[int, Result]]:
    """Do a task for every item, a number at a time; yield each item's place with its result as they end.

    A process that is lost breaks the pool that it is in, so what was under way there is done again in a new one.

    Raises:
        RunFailedError: A task was lost three times.
    """
    size = max(1, min(MOST_AT_A_TIME, len(items) // (LEAST_SHARES * workers)))
    waiting = deque((place, items[place : place + size]) for place in range(0, len(items), size))
    times_lost = Counter[int]()
    while waiting:
        at_once = max(1, min(workers, len(waiting)))
        with ProcessPoolExecutor(at_once, multiprocessing.get_context("spawn"), _begin, (os.getpid(),)) as pool:
            lost = yield from _answers(pool, partial(_do_all, task), waiting, at_once)
        waiting.extendleft(lost)
        times_lost.update(place for place, _ in lost)
        if any(times_lost[place] >= MOST_ATTEMPTS for place, _ in lost):
            raise RunFailedError(LOST.format(times=MOST_ATTEMPTS))


def _begin(parent: int) -> None:
    die_with(parent)
    keep_to_one_core()
    collect_rarely()


def _do_all(task: Callable[[Item], Result], items: Sequence[Item]) -> bytes:
    return pack([task(item) for item in items])


def _answers(
    pool: ProcessPoolExecutor,
    task: Callable[[Sequence[Item]], bytes],
    waiting: "deque[Share[Item]]",
    at_once: int,
) -> "Generator[tuple[int, Result], None, list[Share[Item]]]":
    """Yield what comes back, until all has, or the pool is broken; return what was in progress.

    No more is handed over than there are processes, for a broken pool does not say what had begun.
    """
    lost: list[Share[Item]] = []
    running: dict[Future[bytes], Share[Item]] = {}
    while True:
        with contextlib.suppress(BrokenProcessPool):  # what is under way says so too
            while waiting and len(running) < at_once:
                running[pool.submit(task, waiting[0][1])] = waiting[0]
                waiting.popleft()
        if not running:
            return lost
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            share = running.pop(future)
            try:
                results = unpack(future.result())
            except BrokenProcessPool:
                lost.append(share)
            else:
                yield from enumerate(results, start=share[0])
