"""Explore: Optuna proposes from what races found, seeded with what the model proposes where there is one.

For pipelines that the model cannot predict, such as functions that hold Python's lock. Each round asks for a few
configurations, races them against the leader, and tells what they took relative to the start. The study lives in memory:
a resumed search asks and tells the same again, for the sampler's seed and the answers are the same.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline_lab.tuning.contest import Contest
from pipeline_lab.tuning.history import Pick, Proposed, Raced
from pipeline_lab.tuning.knobs import Knob
from pipeline_lab.tuning.space import START, Configuration

if TYPE_CHECKING:
    import optuna

BATCH = 3
"""Configurations of a round, beside the leader."""
RUNGS = (12,)
MOST_MISSES = 300
"""Proposals in a row that are no valid pipeline, or known already, before the space counts as used up."""


class Exploration:
    """A search that Optuna leads."""

    def __init__(self, contest: Contest) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._contest = contest
        sampler = optuna.samplers.TPESampler(seed=contest.options.seed, n_startup_trials=5)
        self._study = optuna.create_study(sampler=sampler, direction="minimize")
        self._distributions = {knob.name: _distribution(knob) for knob in contest.space.knobs}
        self._ratio = {START: 1.0}

    def run(self, seeds: Sequence[Configuration]) -> str:
        """Search until the budget is spent, and return why it ended, as a sentence.

        Args:
            seeds: What to try first, as the model proposes; empty where it has no answer.
        """
        contest = self._contest
        for one in seeds:
            self._study.enqueue_trial(self._parameters(one))
        self._study.add_trial(self._told(contest.space.start, 0.0))
        for number in range(1, contest.options.max_configurations + 1):
            if contest.is_spent:
                return "The time is spent."
            if contest.room < 1:
                return f"{len(contest.measured)} configurations are measured, as many as were allowed."
            asked = self._ask(min(BATCH, contest.room, contest.budget.most_arms - 1))
            if not asked:
                return "Everything that can be proposed was tried."
            picks = tuple(Pick(one.name, one.options.model_dump(mode="json")) for one, _ in asked)
            source = "the model and Optuna" if number == 1 and seeds else "Optuna, from what raced so far"
            contest.history.add(Proposed(number, len(asked), {}, picks, f"{len(asked)} proposed by {source}."))
            leader = contest.best
            contest.race(number, [leader, *(one for one, _ in asked)], RUNGS)
            self._tell(asked, leader)
        return "As many rounds as configurations were allowed are over."

    def _ask(self, count: int) -> list[tuple[Configuration, "optuna.trial.Trial"]]:
        """Ask for configurations that are valid and new; others are told to be worthless."""
        import optuna

        asked: list[tuple[Configuration, optuna.trial.Trial]] = []
        misses = 0
        while len(asked) < count and misses < MOST_MISSES:
            trial = self._study.ask(self._distributions)
            setting = [_value(knob, trial.params[knob.name]) for knob in self._contest.space.knobs]
            configuration = self._contest.space.at(setting)
            taken = {*self._contest.measured, *(one.name for one, _ in asked)}
            if configuration is None or configuration.name in taken or not self._may_run(configuration):
                self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
                misses += 1
            else:
                asked.append((configuration, trial))
                misses = 0
        return asked

    def _may_run(self, configuration: Configuration) -> bool:
        """Say whether a configuration keeps the limits that can be told without a model.

        What a cache would take is not among them, so no cache is tried that the start does not have.
        """
        sampling, start = self._contest.sampling, self._contest.space.start
        if sampling is not None and sampling.is_worse(configuration.options):
            return False
        return _has_cache(start) or not _has_cache(configuration)

    def _tell(self, asked: "list[tuple[Configuration, optuna.trial.Trial]]", leader: Configuration) -> None:
        """Tell the log of each configuration's time over the start's, through the leader of its race."""
        import optuna

        raced = next(step for step in reversed(self._contest.history.steps) if isinstance(step, Raced))
        found = {each.configuration: each.ratio for each in raced.standings}
        for configuration, trial in asked:
            ratio = found.get(configuration.name)
            if ratio is None:
                self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                self._ratio[configuration.name] = ratio * self._ratio[leader.name]
                self._study.tell(trial, math.log(self._ratio[configuration.name]))

    def _parameters(self, one: Configuration) -> dict[str, int | str]:
        pairs = zip(self._contest.space.knobs, one.setting, strict=True)
        return {knob.name: knob.values.index(value) if knob.is_ordered else value for knob, value in pairs}

    def _told(self, one: Configuration, value: float) -> "optuna.trial.FrozenTrial":
        import optuna

        return optuna.trial.create_trial(params=self._parameters(one), distributions=self._distributions, value=value)


def _has_cache(configuration: Configuration) -> bool:
    return configuration.options.pipeline.find("cache") is not None


def _distribution(knob: Knob) -> "optuna.distributions.BaseDistribution":
    """Return a line of places for values that lie on one, else the bare choice."""
    import optuna

    if knob.is_ordered:
        return optuna.distributions.IntDistribution(0, len(knob.values) - 1)
    return optuna.distributions.CategoricalDistribution(knob.values)


def _value(knob: Knob, parameter: int | str) -> str:
    return knob.values[parameter] if isinstance(parameter, int) else parameter
