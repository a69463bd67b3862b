"""One remark on a pipeline, and how rules look at its stages."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from pipeline_lab.options.run_options import RunOptions

StageT = TypeVar("StageT")


class Weight(StrEnum):
    """How much a finding matters."""

    PROBLEM = "problem"
    """Something is lost: randomness, data, memory without bound, the whole job."""
    ADVICE = "advice"
    """A known way to be faster, or to mix better."""
    FACT = "fact"
    """What a stage will hold or do, worth knowing."""


@dataclass(frozen=True)
class Finding:
    """One remark on the pipeline.

    Attributes:
        kind: Short name of the rule, the same for every finding of it.
        weight: How much it matters.
        stage: Index of the stage it is about; None for the pipeline as a whole.
        sentence: What it is, and what to do where something can be done.
    """

    kind: str
    weight: Weight
    stage: int | None
    sentence: str


def stages_of(options: RunOptions, kind: type[StageT]) -> list[tuple[int, StageT]]:
    """Return the stages of a kind with their places."""
    return [(index, stage) for index, stage in enumerate(options.pipeline.stages) if isinstance(stage, kind)]


def place_of(options: RunOptions, kind: type[StageT]) -> int | None:
    """Return the place of the first stage of a kind, or None."""
    return next((index for index, _ in stages_of(options, kind)), None)
