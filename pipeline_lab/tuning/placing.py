"""Where every configuration of a search stands on one scale, although they met in different races."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline_lab.tuning.history import Raced, Step


@dataclass(frozen=True)
class Place:
    """A configuration's time over that of the configuration that led first.

    Attributes:
        configuration: Its name.
        fate: What became of it in its last race.
        ratio, low, high: From its last race, through the leaders of the races before; None if it did not run.
        predicted: As the model had it; None where it was not asked.
    """

    configuration: str
    fate: str
    ratio: float | None
    low: float | None
    high: float | None
    predicted: float | None


def find_places(steps: Sequence[Step]) -> tuple[Place, ...]:
    """Return the place of every configuration that raced, the fastest first, those that did not run last."""
    measured: dict[str, float] = {}
    expected: dict[str, float] = {}
    places: dict[str, Place] = {}
    for step in steps:
        if not isinstance(step, Raced):
            continue
        scale, promise = measured.get(step.leader, 1.0), expected.get(step.leader, 1.0)
        for each in step.standings:
            ratio, low, high, predicted = (
                None if value is None else value * factor
                for value, factor in (
                    (each.ratio, scale),
                    (each.low, scale),
                    (each.high, scale),
                    (each.predicted, promise),
                )
            )
            places[each.configuration] = Place(each.configuration, each.fate, ratio, low, high, predicted)
            measured[each.configuration] = scale if ratio is None else ratio
            expected[each.configuration] = promise if predicted is None else predicted
    return tuple(sorted(places.values(), key=lambda each: float("inf") if each.ratio is None else each.ratio))
