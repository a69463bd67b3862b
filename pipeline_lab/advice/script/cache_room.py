"""Whether a cache that a change puts into memory fits there: one rule for suggestions, predictions and ``fix``."""

from collections.abc import Sequence

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.changes import Edit, Insert, MoveBefore
from pipeline_lab.pipeline.recipe import Recipe
from pipeline_lab.units import format_bytes

MUCH_OF_MEMORY = 0.25
"""Share of the memory that a cache may take."""
SIZE_UNKNOWN = "How much memory the cache takes is not known, because the length of the dataset is unknown."


class NoRoom(Unavailable):
    """What a cache would bring is not predicted, because it does not fit into memory."""


@dataclass(frozen=True)
class Kept:
    """What a change keeps in memory.

    Attributes:
        call: Number of the call that makes its elements.
        after: Of the call behind which these are kept, whose elements are as many.
    """

    call: int
    after: int


def find_kept(recipe: Recipe, edits: Sequence[Edit]) -> list[Kept]:
    """Return what a change keeps in memory."""
    found = []
    for edit in edits:
        if isinstance(edit, Insert) and edit.method == "cache" and not edit.arguments:
            found.append(Kept(edit.after, edit.after))
        if isinstance(edit, MoveBefore) and edit.then == "cache":
            found.append(Kept(edit.call, next(iter(recipe.call(edit.before).inputs), edit.call)))
    return found


def find_no_room(size_bytes: float, memory_bytes: float) -> NoRoom | None:
    """Say why a cache does not fit; None where it does.

    Args:
        size_bytes: All that it holds once an epoch is over.
        memory_bytes: That there is.
    """
    allowed = MUCH_OF_MEMORY * memory_bytes
    if size_bytes <= allowed:
        return None
    return NoRoom(
        f"The cache would take {format_bytes(size_bytes)}; a quarter of the memory is {format_bytes(allowed)}."
    )
