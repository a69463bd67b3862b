"""One search, from its first run to its last race.

Where the model can predict, the search follows it: profile the leader, predict the whole space, race what is near the
best, continue from the winner. Where it cannot, Optuna explores.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pipeline_lab.advice.measured_run import Measured
from pipeline_lab.advice.what_if import Prediction
from pipeline_lab.errors import PipelineLabError, RunFailedError, Unavailable
from pipeline_lab.options.tune_options import TuneOptions
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.contest import Contest
from pipeline_lab.tuning.executors.executor import Executor, SearchStoppedError
from pipeline_lab.tuning.history import History, Pick, Profiled, Proposed, Raced
from pipeline_lab.tuning.outlook import Limits, Predicted, SearchModel, look_ahead, pick
from pipeline_lab.tuning.search_result import TIME_SPENT, profile_sentence, proposal_sentence
from pipeline_lab.tuning.space import START, Configuration, Knob
from pipeline_lab.tuning.trials import TrialLedger, Trials
from pipeline_lab.units import BYTES_PER_MB, NS_PER_MS

if TYPE_CHECKING:
    import optuna


CEILING_NEAR = 1.05
"""A step that its input could make faster by less than this is as fast as it gets."""
MOST_PICKS = 6


class NoModelError(PipelineLabError):
    """The model has no answer where a search begins."""


class Climb:
    """A search that the model leads."""

    def __init__(self, contest: Contest, model: SearchModel) -> None:
        self._contest, self._model = contest, model
        self._limits = Limits()

    def run(self) -> str:
        """Search until nothing better is in sight or the budget is spent, and return why, as a sentence.

        Raises:
            RunFailedError: The start does not run.
            NoModelError: The model cannot predict from it.
        """
        contest = self._contest
        for number in range(1, contest.options.max_configurations + 1):
            leader = contest.best
            seen = self._look_at(leader)
            if isinstance(seen, Unavailable):
                return self._without_model(seen)
            measured, prediction = seen
            if prediction.ceiling_gain < CEILING_NEAR:
                return "The step is as fast as its input can make it."
            if contest.is_spent and leader is not contest.space.start:
                return TIME_SPENT
            if contest.room < 1:
                return f"{len(contest.measured)} configurations are measured, as many as were allowed."
            picks = self._propose(number, measured, prediction)
            if not picks:
                return f"No allowed change is predicted to be faster; the step is limited by: {_binds(prediction)}."
            arms = picks if leader is contest.space.start else [leader, *picks]
            contest.race(number, arms)
            if contest.best is leader:
                return "Nothing that the model proposes is faster."
            if not contest.budget.has_a_round:
                return TIME_SPENT
        return "As many rounds as configurations were allowed are over."

    def suggest(self, count: int) -> list[Configuration]:
        """Return what the model would race first; nothing where it cannot predict from the start.

        Raises:
            RunFailedError: The start does not run.
        """
        seen = self._look_at(self._contest.space.start)
        return [] if isinstance(seen, Unavailable) else self._propose(0, *seen)[:count]

    def _look_at(self, leader: Configuration) -> tuple[Measured, Prediction] | Unavailable:
        """Run the leader by itself; the start's run also says how much memory there is and how large its files are."""
        try:
            folder = self._contest.run_alone(leader)
        except RunFailedError as failed:
            if leader is self._contest.space.start:
                raise
            self._contest.history.add(Profiled(leader.name, "", None, None, "", str(failed)))
            return Unavailable(str(failed))
        measured = self._model.measure(folder)
        found = measured if isinstance(measured, Unavailable) else self._model.predict(measured, measured.options)
        if isinstance(measured, Unavailable) or isinstance(found, Unavailable):
            assert isinstance(found, Unavailable)
            self._contest.history.add(Profiled(leader.name, folder.id, None, None, "", found.reason))
            return found
        if leader is self._contest.space.start:
            self._limits = self._find_limits(folder)
        if not isinstance(found.memory_bytes, Unavailable):
            self._contest.costs[leader.name] = (float(found.memory_bytes), float(found.threads))
        binds = _binds(found)
        sentence = profile_sentence(leader.name, found.step_ns, found.ceiling_gain, binds)
        self._contest.history.add(
            Profiled(leader.name, folder.id, found.step_ns / NS_PER_MS, found.ceiling_gain, binds, sentence)
        )
        return measured, found

    def _without_model(self, missing: Unavailable) -> str:
        if self._contest.best is self._contest.space.start:
            raise NoModelError(missing.reason)
        return f"The model cannot predict from the winner: {missing.reason}"

    def _find_limits(self, folder: RunFolder) -> Limits:
        options, environment = self._contest.options, read_record(folder).environment
        memory = environment.get("memory_bytes")
        half_bytes = int(memory) // 2 if memory else None
        wanted_bytes = options.max_memory_mb * BYTES_PER_MB if options.max_memory_mb else half_bytes
        return Limits(wanted_bytes, options.max_threads)

    def _propose(self, number: int, measured: Measured, now: Prediction) -> list[Configuration]:
        """Return what is worth a race against what is predicted to be the best so far, the most promising first."""
        contest = self._contest
        assert contest.sampling is not None
        outlook = look_ahead(contest.space, measured, self._model, self._limits, contest.sampling)
        worthwhile = [
            one
            for one in outlook.allowed
            if one.configuration.name not in contest.measured and one.step_ns < now.step_ns / (1 + contest.margin)
        ]
        arms = contest.budget.most_arms - (contest.best is not contest.space.start)
        chosen = pick(
            worthwhile, min(MOST_PICKS, contest.room, max(1, arms))
        )  # a single one can race the start directly
        leader = contest.best.name
        for one in chosen:
            contest.promised[one.configuration.name] = contest.promised[leader] * one.step_ns / now.step_ns
            contest.costs[one.configuration.name] = (float(one.memory_bytes), float(one.threads))
        gain = now.step_ns / chosen[0].step_ns if chosen else 1.0
        sentence = proposal_sentence(outlook.looked_at, outlook.refused, len(chosen), gain)
        picks = tuple(_describe(one) for one in chosen)
        contest.history.add(Proposed(number, outlook.looked_at, outlook.refused, picks, sentence))
        return [one.configuration for one in chosen]


def _binds(prediction: Prediction) -> str:
    return prediction.terms[0].name


def _describe(one: Predicted) -> Pick:
    options = one.configuration.options.model_dump(mode="json")
    return Pick(one.configuration.name, options, one.step_ns / NS_PER_MS, one.memory_bytes, one.threads)


BATCH = 3
"""Configurations of a round, besides the leader."""
RUNGS = (12,)
MOST_MISSES = 300
"""Consecutive proposals that are invalid or known already before the space counts as exhausted."""


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
                return TIME_SPENT
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
        """Ask Optuna for valid, new configurations; others are reported as failed."""
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
        """Say whether a configuration keeps the limits that need no model.

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
    """Return an integer range for ordered values, else a choice."""
    import optuna

    if knob.is_ordered:
        return optuna.distributions.IntDistribution(0, len(knob.values) - 1)
    return optuna.distributions.CategoricalDistribution(knob.values)


def _value(knob: Knob, parameter: int | str) -> str:
    return knob.values[parameter] if isinstance(parameter, int) else parameter


def search(
    folder: RunFolder,
    options: TuneOptions,
    store: RunStore,
    executor: Executor,
    should_stop: Callable[[], bool],
    model: SearchModel | None = None,
) -> None:
    """Search until the budget is spent or nothing better is in sight; what was found so far is in the folder.

    Args:
        folder: The search's own run; trials that it holds already are not measured again.
        options: What to search.
        store: Where the trials go.
        executor: What measures them.
        should_stop: Called repeatedly.
        model: What predicts; None for the real one.

    Raises:
        PipelineLabError: The start does not run.
        SearchStoppedError: It was asked to stop; the best so far is recorded.
    """
    executor.check(options.start)
    trials = Trials(TrialLedger(folder.trials), executor, should_stop)
    contest = Contest(options, trials, History(folder.history), store)
    try:
        contest.meet_the_start(_look_for_better(contest, Climb(contest, model or SearchModel())))
    except SearchStoppedError as stopped:
        contest.end(str(stopped))
        raise


def _look_for_better(contest: Contest, climb: Climb) -> str:
    """Follow the model, or explore where that is asked for or the model has no answer; return why it ended."""
    if contest.options.explore:
        return Exploration(contest).run(climb.suggest(BATCH))
    try:
        return climb.run()
    except NoModelError:
        return Exploration(contest).run(())
