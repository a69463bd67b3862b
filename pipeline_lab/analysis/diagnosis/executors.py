"""Who analyzes the traces of a run or log: this process, one after another, or several processes, a few traces at a time each."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

MANY = 400
"""Traces from which on processes are begun by themselves: each takes a second to start, a short window some 15 ms to analyze."""


class TraceExecutor(Protocol):
    """Does a task for every item and yields the item's place with its result, in whatever order they end."""

    def __call__(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]: ...


def in_turn(task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
    """Do the tasks here, one after another: one trace in memory at a time."""
    for place, item in enumerate(items):
        yield place, task(item)


def on_all_cores_if_many(task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
    """Do the tasks here, or where there are :data:`MANY`, on every core, which only a program with a guarded ``__main__`` can."""
    if len(items) < MANY:
        return in_turn(task, items)
    from pipeline_lab.analysis.diagnosis.processes import spread_over_processes
    from pipeline_lab.runs.machine.limits import usable_cores

    workers = int(usable_cores())
    return in_turn(task, items) if workers < 2 else spread_over_processes(task, items, workers)
