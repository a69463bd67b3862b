"""What decides every search, whatever was proposed: races of several, and a race of the winner against the start.

Races decide which configuration wins. A separate race measures what the winner gained over the start.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from pipeline_lab.comparison.race_result import Race, read_race
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.options.race_options import AnyRace
from pipeline_lab.options.tune_options import SearchRules
from pipeline_lab.runs.race_standings import plan_looks
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.halving import RUNGS, ArmVerdict, Fate, Ratio, halve
from pipeline_lab.tuning.history import History, Raced, RacedArm, SearchEnded, has_raced
from pipeline_lab.tuning.search_result import (
    TIME_SPENT,
    end_sentence,
    no_first_race_sentence,
    no_time_sentence,
    too_few_sentence,
)
from pipeline_lab.tuning.space import START
from pipeline_lab.tuning.trials import TimeBudget, TrialLine, Trials

Runs = TypeVar("Runs")
"""What a race is made of: the options of a job, or what is changed in a script."""
MakeRace: TypeAlias = Callable[[Runs, Sequence[Runs], dict[str, Any]], AnyRace]
"""Returns a race of a leader and its challengers under rules that are given as for the race's options."""

MOST_CANDIDATES = 7
"""Beside the leader; a race has eight arms at most."""


@dataclass(frozen=True)
class Challenger(Generic[Runs]):
    """What races the leader.

    Attributes:
        options: What runs.
        predicted: Its time over the leader's as the model has it; None if there is no prediction.
    """

    options: Runs
    predicted: float | None


@dataclass(frozen=True)
class Met:
    """What races found.

    Attributes:
        ratios: Of each candidate's time to the leader's, None for one that did not run.
        races: The runs that hold the races.
        missing_s: Time that the last race lacked for its first interval, as its rounds went; 0 if it has one.
        failure: Why the last one that failed did; empty where none did.
    """

    ratios: Mapping[str, Ratio | None]
    races: tuple[str, ...]
    missing_s: float = 0.0
    failure: str = ""


class Meeting(Generic[Runs]):
    """Races configurations, which are given by name."""

    def __init__(
        self,
        options: SearchRules,
        trials: Trials,
        store: RunStore,
        budget: TimeBudget,
        make_race: "MakeRace[Runs]",
    ) -> None:
        self._options, self._trials, self._store, self._budget = options, trials, store, budget
        self._make_race = make_race

    def race(
        self,
        title: str,
        leader: Runs,
        candidates: Mapping[str, Challenger[Runs]],
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
        leader: Runs,
        groups: Sequence[Mapping[str, Challenger[Runs]]],
        pairs: int,
        alpha: float,
        keep_s: float,
    ) -> Met:
        """Race the groups, as many at once as there are machines; once the budget is spent the others are left out."""
        ratios: dict[str, Ratio | None] = {name: None for group in groups for name in group}
        races: list[str] = []
        missing_s, failure = 0.0, ""
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
                failure = line.failure or failure
                race = self._read(line)
                found = None if race is None else _ratios(race)
                missing_s = 0.0 if race is None else _missing_s(race)
                ratios |= dict(zip(group, found if found else [None] * len(group), strict=True))
        return Met(ratios, tuple(races), missing_s, failure)

    def _plan(
        self,
        title: str,
        leader: Runs,
        candidates: Sequence[Challenger[Runs]],
        pairs: int,
        alpha: float,
        share_s: float,
    ) -> AnyRace:
        """Return what a race runs, and how long it may take to be over after its share of the budget."""
        time = self._budget.divide(1 + len(candidates), share_s)
        rules = {
            "name": f"{self._options.label[:150]}: {title}",
            "pairs": pairs,
            "alpha": alpha,
            "block_steps": self._options.block_steps,
            "margin_percent": self._options.margin_percent,
            "max_seconds": time.rounds_s,
            "warmup_seconds": time.warmup_s,
            "seed": self._options.seed,
            "predicted_ratios": [each.predicted for each in candidates],
        }
        return self._make_race(leader, [each.options for each in candidates], rules)

    def _read(self, line: TrialLine) -> Race | None:
        if line.failure:
            return None
        try:
            return read_race(self._store.folder(line.run))
        except PipelineLabError:
            return None


def _divide(candidates: Mapping[str, Challenger[Runs]], machines: int) -> list[dict[str, Challenger[Runs]]]:
    """Distribute the candidates so that each machine gets good and less good ones."""
    groups = max(math.ceil(len(candidates) / MOST_CANDIDATES), min(machines, len(candidates)))
    names = list(candidates)
    return [{name: candidates[name] for name in names[first::groups]} for first in range(groups)]


def _ratios(race: Race) -> list[Ratio]:
    """Return what a race says of its candidates; before its first look the ratio of their times, and nothing is excluded."""
    examples = race.options.examples_per_step or (1,) * len(race.arms)
    times_ns = [arm.step_ns / size for arm, size in zip(race.arms, examples, strict=True)]
    return [
        Ratio(time_ns / times_ns[0], 0.0, math.inf)
        if (result := candidate.standing.result) is None
        else Ratio(result.ratio, result.low, result.high)
        for candidate, time_ns in zip(race.candidates, times_ns[1:], strict=True)
    ]


def _missing_s(race: Race) -> float:
    """Return what a race lacked for an interval with bounds, by the time that its rounds took: where looks found none, as much again."""
    is_open = race.kept_rounds and any(not ratio.is_known for ratio in _ratios(race))
    missing = max(plan_looks(race.options).first_look - race.kept_rounds, race.kept_rounds if is_open else 0)
    return max(0, missing) * race.options.max_seconds / max(1, race.rounds)


SCREENING_ALPHA, LAST_ALPHA = 0.2, 0.05
"""Chances that an interval misses the truth: of the races that choose, and of the one that measures the gain."""


class HasName(Protocol):
    """What a search tells apart by a name."""

    @property
    def name(self) -> str:
        """The name."""
        ...


Arm = TypeVar("Arm", bound=HasName)


class Deciding(ABC, Generic[Arm, Runs]):
    """What races say of the arms of one search, and the current leader.

    Args:
        options: Of the search.
        trials: Measures.
        history: Takes the steps.
        store: Where trials are.
        start: What every gain is measured against.
    """

    reference: str | None = None
    """The arm that every race includes; None for the leader of the race before."""
    in_words = "“{}”"
    """What sentences call a configuration; the braces stand for its name."""

    def __init__(
        self,
        options: SearchRules,
        trials: Trials,
        history: History,
        store: RunStore,
        start: Arm,
    ) -> None:
        self.rules, self.trials, self.history, self.store, self.start = options, trials, history, store, start
        self.best: Arm = start
        self.promised = {START: 1.0}
        """Time over the start's that the model expected of a configuration when it was chosen, by name."""
        self.measured = {START}
        """Names of the configurations that ran, or began to."""
        self._known: dict[str, Arm] = {START: start}
        self.budget = TimeBudget(options.budget_s, trials)
        self._undecided: Arm | None = None
        """What seemed best of those of the last race that it was too short for."""
        self._meeting = Meeting[Runs](options, trials, store, self.budget, self.make_race)

    @abstractmethod
    def make_race(self, leader: Runs, challengers: Sequence[Runs], rules: dict[str, Any]) -> AnyRace:
        """Return the options of a race; see :data:`MakeRace`."""

    @abstractmethod
    def runs(self, arm: Arm) -> Runs:
        """Return what runs for an arm."""

    def screens(self, arm: Arm) -> Runs:
        """Return what runs for an arm in a race that only has to choose."""
        return self.runs(arm)

    def arm(self, name: str) -> Arm:
        """Return an arm that raced, by its name."""
        return self._known[name]

    @abstractmethod
    def cost(self, name: str) -> tuple[float, ...]:
        """Return what an arm costs besides its time, for those that are equally fast; compared from left to right."""

    @property
    def margin(self) -> float:
        """Smallest relative difference that matters."""
        return self.rules.margin_percent / 100

    @property
    def room(self) -> int:
        """Configurations that may still be measured."""
        return self.rules.max_configurations - len(self.measured)

    @property
    def is_spent(self) -> bool:
        """Say whether what is left of the budget is needed for the last race."""
        return self.budget.most_arms < 2

    def race(self, number: int, arms: Sequence[Arm], rungs: Sequence[int] = RUNGS) -> None:
        """Find the best of some configurations, the first of which leads at first; it leads the contest from then on.

        One alone leads without a race.

        Args:
            number: Of the round.
            arms: All different.
            rungs: Pairs of each race.
        """
        self._known |= {arm.name: arm for arm in arms}
        self.best = arms[0]
        if len(arms) < 2:
            return
        self.measured |= {arm.name for arm in arms}
        races: list[str] = []

        def meet(leader: str, others: Sequence[str], pairs: int) -> Mapping[str, Ratio | None]:
            candidates = {
                name: Challenger(self.screens(self._known[name]), self.expected_ratio(name, leader)) for name in others
            }
            title, first = f"round {number}, {len(others) + 1} arms", self.screens(self._known[leader])
            keep_s = (self.budget.left_s + self.budget.kept_s) / 2  # half of what is free is for the races after this
            met = self._meeting.race(title, first, candidates, pairs, SCREENING_ALPHA, keep_s)
            races[:] = met.races
            return met.ratios

        def report(rung: int, leader: str, verdicts: Sequence[ArmVerdict]) -> None:
            standings = tuple(self._standing(each, leader) for each in verdicts)
            self.history.add(Raced(number, tuple(races), leader, rungs[rung], standings))
            self.best = self._known[next(each.arm for each in verdicts if each.fate is Fate.LEADS)]
            others = [each for each in verdicts if each.ratio is not None and not each.ratio.is_known]
            others = [each for each in others if each.arm not in (START, self.best.name)]
            nearest = min(others, key=lambda each: each.ratio.ratio if each.ratio else math.inf, default=None)
            self._undecided = None if nearest is None else self._known[nearest.arm]

        halve(
            [arm.name for arm in arms],
            meet,
            report,
            self.cost,
            margin=self.margin,
            rungs=rungs,
            reference=self.reference,
            is_spent=lambda: self.is_spent,
        )

    def meet_the_start(self, reason: str) -> None:
        """Race the winner against the start and end the search; a winner that is not faster than the start is none.

        One that seems faster by what matters leads, though its interval may leave the matter undecided; one whose race
        did not run is none either. Where the start leads a race that was too short, what seemed best beside it meets it again.

        Args:
            reason: Why the search ends, as a sentence.
        """
        winner = self.best
        if winner is self.start and self._undecided is not None:
            winner = self._undecided
        if winner is self.start:
            is_short = reason == TIME_SPENT and not any(isinstance(step, Raced) for step in self.history.steps)
            said = no_first_race_sentence(self.budget.least_to_begin_s) if is_short else reason
            self.end(said, had_time=not is_short)
            return
        if self.budget.left_s < self.budget.race_s(2):
            self.end(no_time_sentence(reason, self.budget.least_s))
            return
        self.measured.add(winner.name)
        met = self._meeting.race(
            "the winner against the start",
            self.runs(self.start),
            {winner.name: Challenger(self.runs(winner), self.expected_ratio(winner.name, START))},
            self.rules.pairs,
            LAST_ALPHA,
            keep_s=0.0,
        )
        ratio = met.ratios[winner.name]
        if ratio is None and met.failure:
            reason = f"{met.failure} {reason}"
        self.best = self.start if ratio is None or ratio.ratio > 1 / (1 + self.margin) else winner
        if ratio is not None and not ratio.is_known and met.missing_s:
            reason = too_few_sentence(reason, self.budget.total_with_s(met.missing_s))
        self.end(reason, ratio, met.races[0], winner)

    def end(
        self,
        reason: str,
        ratio: Ratio | None = None,
        race: str = "",
        challenger: Arm | None = None,
        *,
        had_time: bool = True,
    ) -> None:
        """Write down how the search ended.

        Args:
            reason: Why, as a sentence.
            ratio: Of the challenger's time to the start's, where they met.
            race: The run that holds that race.
            challenger: What raced the start; the leader if nothing did.
            had_time: There was time for a race.
        """
        challenger = challenger or self.best
        predicted = self.expected_ratio(challenger.name, START)
        was_raced = had_time if challenger is self.start else has_raced(self.history.steps, challenger.name)
        self.history.add(
            SearchEnded(
                winner=self.best.name,
                ratio=ratio.ratio if ratio else None,
                low=_bound(ratio.low) if ratio else None,
                high=_bound(ratio.high) if ratio else None,
                race=race,
                predicted=predicted,
                configurations=len(self.measured),
                spent_s=self.trials.spent_s,
                sentence=end_sentence(
                    self.best.name,
                    challenger.name,
                    self.in_words.format(challenger.name),
                    ratio,
                    reason,
                    was_raced=was_raced,
                ),
                challenger=challenger.name,
            )
        )

    def expected_ratio(self, name: str, leader: str) -> float | None:
        """Return the ratio of two configurations' times as the model predicted it; None if one has no prediction."""
        one, other = self.promised.get(name), self.promised.get(leader)
        return None if one is None or other is None else one / other

    def _standing(self, verdict: ArmVerdict, leader: str) -> RacedArm:
        ratio = verdict.ratio
        return RacedArm(
            configuration=verdict.arm,
            fate=verdict.fate.value,
            ratio=ratio.ratio if ratio else None,
            low=_bound(ratio.low) if ratio else None,
            high=_bound(ratio.high) if ratio else None,
            predicted=self.expected_ratio(verdict.arm, leader),
        )


def _bound(value: float) -> float | None:
    """Return an end of an interval as JSON can hold it; None where nothing is excluded."""
    return value if 0 < value < math.inf else None
