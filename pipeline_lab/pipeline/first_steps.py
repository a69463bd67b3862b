"""The first steps of a script's training, to be compared with those of a changed one: what its process is asked, and what it answers."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.samples import Draws, ReadingPlace

STEPS = 3
"""Steps that are trained."""
CLOSE = 1e-3
"""Difference of what Keras logs, relative to it, that rounding explains after that many steps."""


@dataclass(frozen=True)
class StepsRequest:
    """What is to be done.

    Attributes:
        target, arguments, is_module: The script, as on the command line.
        texts: Files to run in another form than they have on disk.
        reading: Where it reads the dataset that it trains on.
        patience_s: Time that the script may take in all.
        draws: One of :class:`~pipeline_lab.pipeline.samples.Draws`.
        steps: To train; calls of the training function where one of them runs several.
    """

    target: str
    arguments: Sequence[str]
    is_module: bool
    texts: Mapping[str, str]
    reading: ReadingPlace
    patience_s: float
    draws: str = Draws.AS_THEY_COME.value
    steps: int = STEPS

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Return a request from its JSON."""
        return cls(**{**document, "reading": ReadingPlace(**document["reading"])})


@dataclass(frozen=True)
class TrainedSteps:
    """What was trained.

    Attributes:
        count: Steps, or calls of the training function.
        logs: What Keras logged after the last of them, by name; nothing in a loop of the script's own.
    """

    count: int
    logs: Mapping[str, float]

    def find_difference(self, other: "TrainedSteps") -> str:
        """Return a sentence on what differs from another training by more than rounding; empty where nothing does."""
        for name, value in self.logs.items():
            now = other.logs.get(name)
            if now is None or not (math.isclose(now, value, rel_tol=CLOSE) or (math.isnan(now) and math.isnan(value))):
                said = "not there" if now is None else f"{now:.5g}"
                return f"After {other.count} steps of training, {name} is {said}; of the script as it is, {value:.5g}."
        return ""
