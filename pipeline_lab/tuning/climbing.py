"""Follow the model: profile the leader, predict the whole space, race what is near the best, go on from the winner."""

from pipeline_lab.advice.measured import Measured
from pipeline_lab.advice.what_if import Prediction
from pipeline_lab.errors import PipelineLabError, RunFailedError, Unavailable
from pipeline_lab.runs.store import RunFolder, read_record
from pipeline_lab.tuning.contest import Contest
from pipeline_lab.tuning.history import Pick, Profiled, Proposed
from pipeline_lab.tuning.limits import Limits
from pipeline_lab.tuning.modelling import Model, look_ahead
from pipeline_lab.tuning.picking import Predicted, pick
from pipeline_lab.tuning.space import Configuration
from pipeline_lab.tuning.words import profile_sentence, proposal_sentence
from pipeline_lab.units import BYTES_PER_MB

CEILING_NEAR = 1.05
"""A step that its input could make faster by less than this is as fast as it gets."""
MOST_PICKS = 6


class NoModelError(PipelineLabError):
    """The model has no answer where a search begins."""


class Climb:
    """A search that the model leads."""

    def __init__(self, contest: Contest, model: Model) -> None:
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
                return "The time is spent."
            if contest.room < 1:
                return f"{len(contest.measured)} configurations are measured, as many as were allowed."
            picks = self._propose(number, measured, prediction)
            if not picks:
                return f"Nothing that is allowed is expected to be faster; the step waits for: {_binds(prediction)}."
            arms = picks if leader is contest.space.start else [leader, *picks]
            contest.race(number, arms)
            if contest.best is leader:
                return "Nothing that the model proposes is faster."
            if not contest.budget.has_a_round:
                return "The time is spent."
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
        sentence = profile_sentence(leader.name, found.step_ms, found.ceiling_gain, binds)
        self._contest.history.add(Profiled(leader.name, folder.id, found.step_ms, found.ceiling_gain, binds, sentence))
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
            if one.configuration.name not in contest.measured and one.step_ms < now.step_ms / (1 + contest.margin)
        ]
        arms = contest.budget.most_arms - (contest.best is not contest.space.start)
        chosen = pick(
            worthwhile, min(MOST_PICKS, contest.room, max(1, arms))
        )  # one can meet the start without a race before
        leader = contest.best.name
        for one in chosen:
            contest.promised[one.configuration.name] = contest.promised[leader] * one.step_ms / now.step_ms
            contest.costs[one.configuration.name] = (float(one.memory_bytes), float(one.threads))
        gain = now.step_ms / chosen[0].step_ms if chosen else 1.0
        sentence = proposal_sentence(outlook.looked_at, outlook.refused, len(chosen), gain)
        picks = tuple(_describe(one) for one in chosen)
        contest.history.add(Proposed(number, outlook.looked_at, outlook.refused, picks, sentence))
        return [one.configuration for one in chosen]


def _binds(prediction: Prediction) -> str:
    return prediction.terms[0].name


def _describe(one: Predicted) -> Pick:
    options = one.configuration.options.model_dump(mode="json")
    return Pick(one.configuration.name, options, one.step_ms, one.memory_bytes, one.threads)
