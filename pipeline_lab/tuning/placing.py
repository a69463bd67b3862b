"""Where every configuration of a search stands on one scale, although they met in different races."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline_lab.tuning.halving import Fate
from pipeline_lab.tuning.history import Ended, Raced, Standing, Step
from pipeline_lab.tuning.space import START


@dataclass(frozen=True)
class Place:
    """A configuration's time per step over that of the reference.

    Attributes:
        configuration: Its name.
        fate: What became of it in its last race.
        ratio, low, high: From its last race, through the leaders of the races before; None if it did not run.
        predicted: As the model had it; None where it was not asked.
    """

    configuration: str
    fate: Fate
    ratio: float | None
    low: float | None
    high: float | None
    predicted: float | None

    def scaled(self, measured: float, expected: float | None) -> "Place":
        """Return the place on a scale on which its reference stands elsewhere."""
        ratio, low, high = (None if each is None else each * measured for each in (self.ratio, self.low, self.high))
        predicted = None if self.predicted is None or expected is None else self.predicted * expected
        return replace(self, ratio=ratio, low=low, high=high, predicted=predicted)


@dataclass(frozen=True)
class Places:
    """All of them.

    Attributes:
        reference: The configuration whose time is 1: the start where one met it, else the one that led first.
        rows: The one that leads, then the fastest first, those that did not run last.
    """

    reference: str
    rows: tuple[Place, ...]


def find_places(steps: Sequence[Step]) -> Places:
    """Return the place of every configuration that raced."""
    raced = [step for step in steps if isinstance(step, Raced)]
    reference = raced[0].leader if raced else START
    found = _chain(raced)
    ended = next((step for step in steps if isinstance(step, Ended) and step.ratio is not None), None)
    if ended is not None:
        reference, found = START, _over_the_start(found, ended)
    rows = sorted(found.values(), key=lambda each: (each.fate is not Fate.LEADS, each.ratio or math.inf))
    return Places(reference, tuple(rows))


def _chain(raced: Sequence[Raced]) -> dict[str, Place]:
    """Return places over the time of the first leader."""
    found: dict[str, Place] = {}
    for step in raced:
        leader = found.get(step.leader)
        measured = 1.0 if leader is None or leader.ratio is None else leader.ratio
        expected = leader.predicted if leader else 1.0
        found |= {each.configuration: _place(each).scaled(measured, expected) for each in step.standings}
    return found


def _over_the_start(found: dict[str, Place], ended: Ended) -> dict[str, Place]:
    """Return places over the start's time, through the one that met it."""
    assert ended.ratio is not None
    met = Place(ended.challenger, Fate.LEADS, ended.ratio, ended.low, ended.high, ended.predicted)
    start = Place(START, Fate.BEHIND, 1.0, 1.0, 1.0, 1.0)
    if ended.winner == START:
        met, start = replace(met, fate=Fate.BEHIND), replace(start, fate=Fate.LEADS)
    known = found.get(ended.challenger)
    if known is None or not known.ratio:
        others = {}
    else:
        expected = ended.predicted / known.predicted if ended.predicted and known.predicted else None
        others = {name: each.scaled(ended.ratio / known.ratio, expected) for name, each in found.items()}
    return {**others, ended.challenger: met, START: start}


def _place(standing: Standing) -> Place:
    numbers = (standing.ratio, standing.low, standing.high, standing.predicted)
    return Place(standing.configuration, Fate(standing.fate), *numbers)
