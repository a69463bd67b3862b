"""What a search found, read from its folder and put into words: finished, stopped, or still going.

``SCHEMA_VERSION`` history of :meth:`Tuning.to_json`: 1, the first one.
"""

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline_lab.advice.option_changes import find_settings, write_command
from pipeline_lab.comparison.race_result import LEAST_CHANGE
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import StoreError
from pipeline_lab.hooks import Displayed
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.options.tune_options import SearchRules, TuneOptions, is_script_tune, read_tune_options
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.record import EMULATED_NOTE, RunKind, RunRecord, RunState
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.store import name_of
from pipeline_lab.tuning.halving import Fate, Ratio
from pipeline_lab.tuning.history import (
    Profiled,
    Proposed,
    Raced,
    RankedConfiguration,
    SearchEnded,
    SearchStep,
    has_raced,
    read_history,
)
from pipeline_lab.tuning.space import START
from pipeline_lab.tuning.trials import TrialLedger, TrialLine
from pipeline_lab.units import NS_PER_S, format_duration, format_percent, write_number

LEAST_CEILING = 1.05
"""How many times faster the step could become by its input before it is worth a number."""


def profile_sentence(name: str, step_ns: float, ceiling: float, binds: str) -> str:
    who = "The start" if name == START else f"“{name}”"
    step = format_duration(step_ns)
    more = (
        f"could be about {write_number(ceiling)}× as fast, by this run, if its input were free"
        if ceiling >= LEAST_CEILING
        else "cannot become much faster through its input"
    )
    return f"{who} takes {step} per step, limited by: {binds}. It {more}."


def proposal_sentence(looked_at: int, refused: dict[str, int], picks: int, best_gain: float) -> str:
    """Say what was chosen; ``best_gain`` is how many times faster the best is expected to be."""
    left_out = "; ".join(f"{count:,} {reason}" for reason, count in refused.items())
    return (
        f"Of {looked_at:,} configurations {picks} {'is' if picks == 1 else 'are'} chosen; the best is expected to be "
        f"{best_gain:.2f}× as fast{f' (left out: {left_out})' if left_out else ''}."
    )


def end_sentence(winner: str, challenger: str, who: str, ratio: Ratio | None, reason: str, *, was_raced: bool) -> str:
    """Say who won, by how much, and why the search ended.

    Args:
        winner: What leads at the end.
        challenger: What raced the start, or was going to.
        who: The challenger in words.
        ratio: Of the challenger's time to the start's, where they met.
        reason: Why the search ended, as a sentence.
        was_raced: The challenger ran in some race, so that it is more than the model's choice; of the start, that there was
            time for a race.
    """
    if challenger == START:
        return f"{'Nothing was found that is better than the start' if was_raced else NOTHING_RACED}. {reason}"
    first = who[:1].upper() + who[1:]
    if ratio is None and winner == START:
        was = "led" if was_raced else "was the model's choice"
        return f"The start stays: {who} {was}, but the race between the two did not run. {reason}"
    if ratio is None and not was_raced:
        return f"{first} is only the model's choice: it did not race, so its gain is not measured. {reason}"
    if ratio is None:
        return f"{first} leads, but it did not race the start, so its gain is not measured. {reason}"
    found = _gain(ratio)
    if winner == START:
        return f"The start stays: {who}, the best that was found, takes {found}. {reason}"
    doubt = "" if ratio.high < 1 else "; whether it is faster is undecided"
    return f"{first} takes {found}{doubt}. {reason}"


NOTHING_RACED = "Nothing was raced"
TIME_SPENT = "Another round, and a race of its winner against the start, would not have fitted into the budget."


def too_few_sentence(reason: str, budget_s: float) -> str:
    """Add that the last race had too few rounds for an interval, and which budget would have sufficed."""
    return f"{reason} For an answer, give the search {format_duration(budget_s * NS_PER_S)} or more."


def no_time_sentence(reason: str, least_s: float) -> str:
    """Add that the last race did not fit into the budget, and which budget would have sufficed."""
    return f"{reason} A race of two takes longer than the remaining time; give the search {format_duration(least_s * NS_PER_S)} or more."


def no_first_race_sentence(least_s: float) -> str:
    """Say that not even one race fitted into the budget, and which one would have sufficed for it and for the winner's."""
    return f"A race, and one of its winner against the start, takes longer than the budget; give the search {format_duration(least_s * NS_PER_S)} or more."


def _gain(ratio: Ratio) -> str:
    than = f"{change_words(ratio.ratio)} time per step than the start"
    if ratio.low <= 0 or ratio.high == float("inf"):
        return f"about {than}, after too few rounds for an interval"
    return f"{than} (interval {interval_words(ratio.low, ratio.high)})"


def change_words(ratio: float | None) -> str:
    """Describe a ratio of times: ``24 % less``."""
    if ratio is None:
        return "–"
    return f"{format_percent(100 * abs(1 - ratio))} {'less' if ratio < 1 else 'more'}"


def predicted_words(ratio: float | None) -> str:
    """Describe a predicted ratio of times: ``24 % less``, or that nothing changes."""
    is_same = ratio is not None and abs(1.0 - ratio) < LEAST_CHANGE
    return "no change" if is_same else change_words(ratio)


def interval_words(low: float | None, high: float | None) -> str:
    """Describe the interval of such a ratio, the smaller gain first; the reference has none."""
    if low is None or high is None or low == high:
        return "–"
    ends = [change_words(high), change_words(low)]
    word = ends[0].rpartition(" ")[2]
    return f"{ends[0].removesuffix(f' {word}') if ends[1].endswith(word) else ends[0]} to {ends[1]}"


def outcome_words(place: RankedConfiguration, *, goes_on: bool) -> str:
    """Say what became of a configuration; if the search is over, nothing is still racing."""
    if place.configuration == START:
        return "the start" if place.fate is not Fate.LEADS else "the start stays"
    if place.fate is Fate.KEPT and not goes_on:
        return "left undecided"
    return _OUTCOMES[place.fate]


def place_cells(place: RankedConfiguration, reference: str, *, goes_on: bool) -> tuple[str, str, str, str, str]:
    """Return a row of what was tried: configuration, raced, interval, predicted, outcome."""
    outcome = outcome_words(place, goes_on=goes_on)
    if place.configuration == reference:
        return (place.configuration, "–", "–", "–", outcome)
    numbers = (change_words(place.ratio), interval_words(place.low, place.high), predicted_words(place.predicted))
    return (place.configuration, *numbers, outcome)


_OUTCOMES = {
    Fate.LEADS: "is the best",
    Fate.KEPT: "still in the race",
    Fate.TIED: "as fast, but costs more",
    Fate.BEHIND: "not as good",
    Fate.SLOWER: "clearly slower",
    Fate.UNDECIDED: "undecided: too few rounds",
    Fate.FAILED: "did not run",
}


def describe_step(step: SearchStep) -> str:
    """Put a step of a search into words."""
    return _raced(step) if isinstance(step, Raced) else step.sentence


def _raced(step: Raced) -> str:
    fates = Counter(Fate(each.fate) for each in step.standings)
    others = [
        f"{fates[fate]} {one if fates[fate] == 1 else many}" for fate, (one, many) in _FATES.items() if fates[fate]
    ]
    return f"Round {step.round}, {len(step.standings)} raced: “{step.winner}” is the best{'; ' if others else ''}{', '.join(others)}."


_FATES = {
    Fate.KEPT: ("races on", "race on"),
    Fate.TIED: ("is as fast, but costs more", "are as fast, but cost more"),
    Fate.BEHIND: ("falls behind", "fall behind"),
    Fate.SLOWER: ("is clearly slower", "are clearly slower"),
    Fate.UNDECIDED: ("is undecided", "are undecided"),
    Fate.FAILED: ("did not run", "did not run"),
}


SCHEMA_VERSION = 1


@dataclass(frozen=True, eq=False, repr=False)
class RecordedSearch(Displayed, ABC):
    """What searches have in common, whatever they start from.

    Attributes:
        path: Folder of the run that holds it.
        record: Of that run.
        rules: What it might spend, and what decides.
        steps: What was done and why, in order.
        trials: Every run and race that was measured for it, in order.
    """

    path: Path
    record: RunRecord
    rules: SearchRules
    steps: tuple[SearchStep, ...]
    trials: tuple[TrialLine, ...]

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def notes(self) -> str:
        """The user's words."""
        return self.record.notes

    @property
    def state(self) -> RunState:
        return self.record.status.state

    @property
    def ended(self) -> SearchEnded | None:
        """How it ended; None while it goes on, and where it was killed."""
        return next((step for step in reversed(self.steps) if isinstance(step, SearchEnded)), None)

    @property
    def winner_name(self) -> str:
        """Name of the best configuration that is known."""
        if self.ended is not None:
            return self.ended.winner
        raced = [step for step in self.steps if isinstance(step, Raced)]
        return raced[-1].winner if raced else START

    @property
    def winner_was_raced(self) -> bool:
        """Whether races say that the winner is the best; one that ran in none is only the model's choice."""
        return self.winner_name == START or has_raced(self.steps, self.winner_name)

    @property
    def had_time(self) -> bool:
        """Whether it looked for something better; a search whose time was spent before its first race knows nothing."""
        return not self.sentence.startswith(NOTHING_RACED)

    @property
    def spent_s(self) -> float:
        """What it spent of its budget, s: of trials that ran side by side the mean, which is known when it has ended."""
        return self.ended.spent_s if self.ended is not None else sum(trial.seconds or 0.0 for trial in self.trials)

    @property
    def sentence(self) -> str:
        """How it ended, or what was done last, in words."""
        if self.ended is not None:
            return self.ended.sentence
        return describe_step(self.steps[-1]) if self.steps else "The search has not begun."

    def to_json(self) -> dict[str, Any]:
        """Return the search as one JSON object; times in ms or s as their names say."""
        ended = self.ended
        return {
            "schema_version": SCHEMA_VERSION,
            "id": self.id,
            "name": self.name,
            "state": self.state.value,
            "sentence": self.sentence,
            "winner": self.winner_name,
            **self._winner_json(),
            "gain": None if ended is None or ended.winner == START else _met(ended),
            "challenger": None
            if ended is None or ended.challenger == START
            else {"configuration": ended.challenger, "met": _met(ended)},
            "configurations": None if ended is None else ended.configurations,
            "spent_s": self.spent_s,
            "history": [{"step": step.kind, "sentence": describe_step(step), **asdict(step)} for step in self.steps],
            "trials": [asdict(trial) for trial in self.trials],
        }

    @abstractmethod
    def _winner_json(self) -> dict[str, Any]:
        """Return what is known of the winner by itself."""


@dataclass(frozen=True, eq=False, repr=False)
class Tuning(RecordedSearch):
    """A search for a better pipeline that starts from options.

    Attributes:
        options: What was searched.
    """

    options: TuneOptions

    @property
    def winner(self) -> RunOptions:
        """Options of the best configuration that is known, to launch as they are."""
        name = self.winner_name
        picks = [pick for step in self.steps if isinstance(step, Proposed) for pick in step.picks]
        found = next((pick for pick in picks if pick.configuration == name), None)
        return self.options.start if found is None else read_options(found.options)

    @property
    def race_command(self) -> str | None:
        """The command that races the winner against the start; None where that was done, or is still to come."""
        if self.state.is_live or self.ended is None or self.ended.winner == START or self.ended.ratio is not None:
            return None
        looks = (step for step in self.steps if isinstance(step, Profiled) and step.configuration == START)
        start = next(looks, None)
        if start is None:
            return None
        return write_command(name_of(self.path.parent / start.run), find_settings(self.options.start, self.winner))

    @property
    def source(self) -> str:
        """The winner's pipeline as Python source."""
        return render_source(self.winner)

    @property
    def sentence(self) -> str:
        """How it ended, or what was done last, in words."""
        is_noted = self.ended is not None and self.options.start.training.is_emulated
        return f"{super().sentence} {EMULATED_NOTE}" if is_noted else super().sentence

    def _winner_json(self) -> dict[str, Any]:
        return {
            "winner_options": self.winner.model_dump(mode="json"),
            "winner_source": self.source,
            "winner_was_raced": self.winner_was_raced,
            "race_command": self.race_command,
        }


def _met(ended: SearchEnded) -> dict[str, Any] | None:
    """Return what the race of the challenger and the start found; None if they did not race."""
    names = ("ratio", "low", "high", "predicted", "race")
    return None if ended.ratio is None else {name: getattr(ended, name) for name in names}


def read_tuning(folder: RunFolder) -> Tuning:
    """Read a search that starts from options, finished or not.

    Raises:
        StoreError: The run is not such a search.
        OptionsError: Its options are damaged.
    """
    record = read_record(folder)
    if record.kind is not RunKind.TUNE or is_script_tune(record.options or {}):
        raise StoreError(f"Run {folder.id} is not a search around options; `pipeline-lab tune` makes one.")
    options = read_tune_options(record.options or {})
    return Tuning(folder.path, record, options, read_history(folder.history), read_trials(folder), options)


def read_trials(folder: RunFolder) -> tuple[TrialLine, ...]:
    """Return what a search measured so far, in order."""
    return tuple(TrialLedger(folder.trials).read().values())
