"""How the traces of a log are divided up: one after another here, or by an executor among processes and machines.

A diagnosis is a fold: each trace becomes its parts, and parts are merged in the order of their times, whoever made them
and whenever they came back.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from pipeline_lab.analysis.inputs import Progress
from pipeline_lab.analysis.trace_parts import TraceParts, analyse_trace
from pipeline_lab.errors import TraceReadError, Unavailable
from pipeline_lab.trace.trace_file import TraceFile

Item = TypeVar("Item")
Result = TypeVar("Result")


class Spread(Protocol):
    """Does a task for every item and yields the item's place with its result, in whatever order they end."""

    def __call__(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]: ...


def in_turn(task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
    """Do the tasks here, one after another: one trace in memory at a time."""
    for place, item in enumerate(items):
        yield place, task(item)


def analyse_file(file: TraceFile) -> TraceParts | Unavailable:
    """Return what one trace says, or why it cannot be read."""
    try:
        return analyse_trace(file.read())
    except TraceReadError as error:
        return Unavailable(str(error))


def analyse_files(
    files: Sequence[TraceFile], names: Sequence[str], progress: Progress | None = None, spread: Spread = in_turn
) -> list[TraceParts | Unavailable]:
    """Return what each trace says, in the order of the files.

    Args:
        files: To analyse.
        names: What the progress calls them.
        progress: Told how many are done, how many there are, and the name of one that is not.
        spread: Who does it.
    """
    found: dict[int, TraceParts | Unavailable] = {}
    waiting = dict(enumerate(names))

    def tell() -> None:
        if progress and waiting:
            progress(len(found), len(files), next(iter(waiting.values())))

    tell()
    for place, parts in spread(analyse_file, files):
        found[place] = parts
        del waiting[place]
        tell()
    return [found[place] for place in range(len(files))]
