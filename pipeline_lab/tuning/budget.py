"""The time that a search may spend: what is left, what the next race is going to take, and what is kept for the last one."""

import math
from dataclasses import dataclass

from pipeline_lab.runs.run_events import CalibrationEvent, PhaseEvent, read_events
from pipeline_lab.runs.store import RunFolder, read_record
from pipeline_lab.tuning.trials import Trials
from pipeline_lab.units import NS_PER_S

LAST_RACE_SHARE = 0.25
"""Of the budget, kept for the race in which the winner meets the start."""
LONGEST_RACE_S = 600.0
SHORTEST_RACE_S = 15.0
"""Rounds of fewer seconds tell little."""
WARMUP_S, LEAST_WARMUP_S = 30.0, 1.0
SPARE_SHARE = 0.1
"""On top of what was measured: the same takes longer the next time, and a larger budget also lets runs be longer."""
WARMUP_SHARE = 0.25
"""Of a race's time, what warming up may take."""


@dataclass(frozen=True)
class Costs:
    """What a trial takes beside the time that it is asked to run for, s.

    Attributes:
        once_s: To start its process and to leave.
        each_s: To build and compile one pipeline and its model.
    """

    once_s: float = 0.0
    each_s: float = 0.0


@dataclass(frozen=True)
class RaceTime:
    """What a race may take, s: its rounds, and the warm-up of each of its arms."""

    rounds_s: float
    warmup_s: float


class Budget:
    """What may be spent. Nothing is begun that does not fit, by what trials of this search took."""

    def __init__(self, total_s: float, trials: Trials) -> None:
        self._total_s, self._trials = total_s, trials
        self.costs = Costs()
        """By the run that was looked at last."""
        self.look_s = 0.0
        """What it took in all."""

    @property
    def left_s(self) -> float:
        return self._total_s - self._trials.spent_s

    @property
    def kept_s(self) -> float:
        """Time that is kept for the last race."""
        return max(LAST_RACE_SHARE * self._total_s, self.race_s(2))

    @property
    def most_arms(self) -> int:
        """Arms of the largest race that may be begun now; below 2 where there is time for the last race only."""
        each_s = self.costs.each_s + LEAST_WARMUP_S
        on_one = int((self.left_s - self.kept_s - self.race_s(0)) / each_s)
        return 1 + (on_one - 1) * self._trials.machines if on_one > 1 else 0

    @property
    def has_a_round(self) -> bool:
        """Say whether another leader can be looked at and raced."""
        return self.left_s - self.kept_s >= self.look_s + self.race_s(2)

    @property
    def least_s(self) -> float:
        """A budget that would have had room for the next race of two, in tens of seconds."""
        return 10.0 * math.ceil((1 + SPARE_SHARE) * (self._trials.spent_s + self.race_s(2)) / 10)

    def race_s(self, arms: int) -> float:
        """Return the least time that a race of so many arms takes."""
        return self.costs.once_s + arms * (self.costs.each_s + LEAST_WARMUP_S) + SHORTEST_RACE_S

    def divide(self, arms: int, time_s: float) -> RaceTime:
        """Return what rounds and warm-up of a race may take, so that it is over after ``time_s``."""
        free_s = time_s - self.costs.once_s - arms * self.costs.each_s
        most_s = min(WARMUP_S, WARMUP_SHARE * free_s / arms, (free_s - SHORTEST_RACE_S) / arms)
        warmup_s = max(LEAST_WARMUP_S, most_s)
        return RaceTime(min(LONGEST_RACE_S, max(SHORTEST_RACE_S, free_s - arms * warmup_s)), warmup_s)


def read_costs(folder: RunFolder) -> Costs:
    """Return what a run took beside its training; nothing where it did not note its phases.

    All between building and training counts as building, calibration and warm-up too: in them it compiles. Only the
    calibration's first batch does not, for the warm-up waits for one of its own, as each arm of a race does once.
    """
    status = read_record(folder).status
    begun_s: dict[str, float] = {}
    first_batch_s = 0.0
    for event in read_events(folder.events):
        if isinstance(event, PhaseEvent):
            begun_s.setdefault(event.phase, event.time_ns / NS_PER_S)
        elif isinstance(event, CalibrationEvent):
            first_batch_s = (event.first_batch_ns or 0.0) / NS_PER_S
    if (
        status.started_s is None
        or status.ended_s is None
        or not {"building", "training", "finishing"} <= begun_s.keys()
    ):
        return Costs()
    once_s = begun_s["building"] - status.started_s + status.ended_s - begun_s["finishing"]
    return Costs(max(0.0, once_s), max(0.0, begun_s["training"] - begun_s["building"] - first_batch_s))
