"""Who analyzes the traces of a run or log: this process, one after another, or several processes, a few traces at a time each."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

MANY = 400
"""Traces from which on processes are started without being asked for."""
LEAST_EACH = 200
"""Traces for each process: it takes a second to start, a short window some 15 ms to analyze."""
SMALL_BYTES = 4 << 20
"""Larger traces are read one after another unless somebody asks for more: each takes both cores, and the memory of several small ones."""


class TraceExecutor(Protocol):
    """Does a task for every item and yields the item's place with its result, in whatever order they end."""

    def __call__(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]: ...


def in_turn(task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
    """Do the tasks here, one after another: one trace in memory at a time."""
    for place, item in enumerate(items):
        yield place, task(item)


def processes_if_many(most: int | None = None) -> TraceExecutor:
    """Return an executor that does tasks here, or in several processes where there are at least :data:`MANY`, all of small traces.

    Each process imports the program's ``__main__`` again, so that has to be a file that does nothing on import.

    Args:
        most: Processes at the same time; None for one on each core.
    """

    def spread(task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        if len(items) < MANY or any(getattr(item, "size_bytes", 0) > SMALL_BYTES for item in items):
            return in_turn(task, items)
        from pipeline_lab.analysis.diagnosis.processes import spread_over_processes
        from pipeline_lab.runs.machine.limits import usable_cores

        workers = min(int(usable_cores()), len(items) // LEAST_EACH, most or len(items))
        return in_turn(task, items) if workers < 2 else spread_over_processes(task, items, workers)

    return spread
