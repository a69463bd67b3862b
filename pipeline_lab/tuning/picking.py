"""From predictions to the few configurations that are worth a race."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline_lab.tuning.space import Configuration

NEAR_BEST = 0.10
"""The model is off by about this share, so configurations within it of the best prediction are as good as tied."""


@dataclass(frozen=True, eq=False)
class Predicted:
    """A configuration with what it is expected to cost.

    Attributes:
        configuration: Which one.
        step_ms: Time of a step.
        memory_bytes: What its buffers and caches hold.
        threads: Threads that read and map at the same time.
    """

    configuration: Configuration
    step_ms: float
    memory_bytes: int
    threads: int

    def dominates(self, other: "Predicted") -> bool:
        """Say whether it is nowhere worse than another one, and better somewhere."""
        mine, its = self.costs, other.costs
        return mine != its and all(one <= another for one, another in zip(mine, its, strict=True))

    @property
    def costs(self) -> tuple[float, int, int]:
        return (self.step_ms, self.memory_bytes, self.threads)


def pareto_set(predicted: Sequence[Predicted]) -> list[Predicted]:
    """Return those that no other one dominates, the fastest first; of equals the first."""
    front: list[Predicted] = []
    for one in sorted(predicted, key=lambda each: each.costs):
        if not any(other.dominates(one) or other.costs == one.costs for other in front):
            front.append(one)
    return front


def pick(predicted: Sequence[Predicted], count: int) -> list[Predicted]:
    """Choose what is raced, the best prediction first.

    Among those that are near the best come first the ones that trade time, memory and threads in the best way, then
    those that differ most from what is already chosen: what the model thinks equal may differ in truth, and a race of
    near twins would not show it.

    Args:
        predicted: Everything that is allowed.
        count: How many to choose.
    """
    if not predicted or count < 1:
        return []
    best_ms = min(one.step_ms for one in predicted)
    near = [one for one in predicted if one.step_ms <= best_ms * (1 + NEAR_BEST)]
    chosen = pareto_set(near)[:count]
    rest = [one for one in near if one not in chosen]
    while rest and len(chosen) < count:
        farthest = max(rest, key=lambda one: (_distance(one, chosen), -one.step_ms))
        chosen.append(farthest)
        rest.remove(farthest)
    return chosen


def _distance(one: Predicted, chosen: Sequence[Predicted]) -> int:
    return min(one.configuration.distance(other.configuration) for other in chosen)
