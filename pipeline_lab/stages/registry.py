"""All stages by their names, read from the families, and which of them a call of a script stands for."""

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from pipeline_lab.stages import batches, delivery, functions, order, parts, read, stores
from pipeline_lab.stages.stage import Stage

FAMILIES: tuple[ModuleType, ...] = (
    read,
    functions,
    stores,
    order,
    parts,
    batches,
    delivery,
)
"""Modules of this room that declare stages, in the order in which forms offer them."""


def _declared(family: ModuleType) -> Iterator[type[Stage]]:
    """Yield the stages of a family; a base of several has no name of its own."""
    for kind in vars(family).values():
        is_here = isinstance(kind, type) and issubclass(kind, Stage) and kind.__module__ == family.__name__
        if is_here and not kind.model_fields["stage"].is_required():
            yield kind


STAGE_TYPES: dict[str, type[Stage]] = {
    kind.model_fields["stage"].default: kind for family in FAMILIES for kind in _declared(family)
}
"""Every stage by its name, in the order in which forms offer them."""

if TYPE_CHECKING:
    AnyStage = Stage
else:
    AnyStage = Annotated[Union[tuple(STAGE_TYPES.values())], Field(discriminator="stage")]  # noqa: UP007 (made of a list)
"""A stage in a document, known by its name."""


def iterators_of(method: str) -> frozenset[str]:
    """Return the kinds of iterators that a method of ``tf.data.Dataset`` runs as; none where no stage knows it."""
    kinds = (kind.iterators for kind in STAGE_TYPES.values() if method in kind.methods)
    return frozenset[str]().union(*kinds)


def usual_place(kind: str, stages: Sequence[str]) -> int:
    """Return where a stage is added to others: after the one that it needs, else before a final prefetch, else at the end."""
    new = STAGE_TYPES[kind]
    if new.placed_after in stages:
        return stages.index(new.placed_after) + 1
    is_before_last = bool(stages) and STAGE_TYPES[stages[-1]].at_end > new.at_end
    return len(stages) - is_before_last
