"""Races between configurations: divided among the machines, and taken apart where one arm spoils a race for the others."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline_lab.comparison.race_result import Candidate as Raced
from pipeline_lab.comparison.race_result import read_race
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.options.race_options import RaceOptions, read_race_options
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.tune_options import TuneOptions
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.budget import Budget
from pipeline_lab.tuning.halving import Ratio
from pipeline_lab.tuning.trials import TrialLine, Trials

MOST_CANDIDATES = 7
"""Beside the leader; a race has eight arms at most."""


@dataclass(frozen=True)
class Candidate:
    """What meets the leader.

    Attributes:
        options: What runs.
        predicted: Its time over the leader's as the model has it; None where it was not asked.
    """

    options: RunOptions
    predicted: float | None


@dataclass(frozen=True)
class Met:
    """What races found.

    Attributes:
        ratios: Of each candidate's time to the leader's, None for one that did not run.
        races: The runs that hold the races.
    """

    ratios: Mapping[str, Ratio | None]
    races: tuple[str, ...]


class Meeting:
    """Lets configurations meet; names stand for them."""

    def __init__(self, options: TuneOptions, trials: Trials, store: RunStore, budget: Budget) -> None:
        self._options, self._trials, self._store, self._budget = options, trials, store, budget

    def race(
        self,
        title: str,
        leader: RunOptions,
        candidates: Mapping[str, Candidate],
        pairs: int,
        alpha: float,
        keep_s: float,
    ) -> Met:
        """Race a leader against candidates, on as many machines as there are.

        Args:
            title: Of the races.
            leader: What every race includes.
            candidates: By their names.
            pairs: Rounds after which a race ends in any case.
            alpha: Largest chance that any interval misses the truth.
            keep_s: What is to be left of the budget afterwards, s.
        """
        met = self._race_groups(title, leader, _divide(candidates, self._trials.machines), pairs, alpha, keep_s)
        failed = [name for name, ratio in met.ratios.items() if ratio is None]
        if len(candidates) == 1 or not failed:
            return met
        alone = [{name: candidates[name]} for name in failed]  # one that breaks takes the others of its race with it
        again = self._race_groups(f"{title}, one by one", leader, alone, pairs, alpha, keep_s)
        return Met({**met.ratios, **again.ratios}, (*met.races, *again.races))

    def _race_groups(
        self,
        title: str,
        leader: RunOptions,
        groups: Sequence[Mapping[str, Candidate]],
        pairs: int,
        alpha: float,
        keep_s: float,
    ) -> Met:
        """Race the groups, as many at once as there are machines; once the budget is spent the others are left out."""
        ratios: dict[str, Ratio | None] = {name: None for group in groups for name in group}
        races: list[str] = []
        machines = self._trials.machines
        for first in range(0, len(groups), machines):
            left_s = self._budget.left_s - keep_s
            if races and left_s < self._budget.race_s(2):
                break
            turns = math.ceil((len(groups) - first) / machines)
            at_once = groups[first : first + machines]
            asked = [self._plan(title, leader, list(group.values()), pairs, alpha, left_s / turns) for group in at_once]
            for group, line in zip(at_once, self._trials.run(asked), strict=True):
                races.append(line.run)
                found = self._read(line)
                ratios |= dict(zip(group, found if found else [None] * len(group), strict=True))
        return Met(ratios, tuple(races))

    def _plan(
        self,
        title: str,
        leader: RunOptions,
        candidates: Sequence[Candidate],
        pairs: int,
        alpha: float,
        share_s: float,
    ) -> RaceOptions:
        """Return what a race runs, and how long it may take to be over after its share of the budget."""
        arms = (leader, *(each.options for each in candidates))
        time = self._budget.divide(len(arms), share_s)
        document = {
            "name": f"{self._options.label[:150]}: {title}",
            "arms": [arm.model_dump(mode="json") for arm in arms],
            "pairs": pairs,
            "alpha": alpha,
            "block_steps": self._options.block_steps,
            "margin_percent": self._options.margin_percent,
            "max_seconds": time.rounds_s,
            "warmup_seconds": time.warmup_s,
            "seed": self._options.seed,
            "predicted_ratios": [each.predicted for each in candidates],
        }
        return read_race_options(document)

    def _read(self, line: TrialLine) -> list[Ratio] | None:
        if line.failure:
            return None
        try:
            return [_ratio(candidate) for candidate in read_race(self._store.folder(line.run)).candidates]
        except PipelineLabError:
            return None


def _divide(candidates: Mapping[str, Candidate], machines: int) -> list[dict[str, Candidate]]:
    """Deal the candidates out, so that each machine gets good and less good ones."""
    groups = max(math.ceil(len(candidates) / MOST_CANDIDATES), min(machines, len(candidates)))
    names = list(candidates)
    return [{name: candidates[name] for name in names[first::groups]} for first in range(groups)]


def _ratio(candidate: Raced) -> Ratio:
    """Return what a race says of a candidate; before its first look the estimate of its pairs, and nothing is excluded."""
    result = candidate.standing.result
    if result is not None:
        return Ratio(result.ratio, result.low, result.high)
    return Ratio(candidate.paired.ratio if candidate.paired else 1.0, 0.0, math.inf)
