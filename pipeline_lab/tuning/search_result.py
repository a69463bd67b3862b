"""What a search found, read from its folder: finished, stopped, or still going.

``SCHEMA_VERSION`` history of :meth:`Tuning.to_json`: 1, the first one.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipeline_lab.advice.option_changes import find_settings, write_command
from pipeline_lab.comparison.opening import Recorded, open_any
from pipeline_lab.comparison.race_result import Race
from pipeline_lab.comparison.recorded_runs import RecordedRun
from pipeline_lab.display import Displayed
from pipeline_lab.errors import StoreError
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.options.tune_options import TuneOptions, read_tune_options
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.record import RunKind, RunRecord, RunState
from pipeline_lab.runs.store import RunFolder, find_path, name_of, read_record
from pipeline_lab.tuning.history import Ended, Profiled, Proposed, Raced, Step, has_raced, read_history
from pipeline_lab.tuning.search_words import describe
from pipeline_lab.tuning.space import START
from pipeline_lab.tuning.trials import Ledger, TrialLine

SCHEMA_VERSION = 1


@dataclass(frozen=True, eq=False, repr=False)
class Tuning(Displayed):
    """A search for a better pipeline.

    Attributes:
        path: Folder of the run that holds it.
        record: Of that run.
        options: What was searched.
        steps: What was done and why, in order.
        trials: Every run and race that was measured for it, in order.
    """

    path: Path
    record: RunRecord
    options: TuneOptions
    steps: tuple[Step, ...]
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
    def ended(self) -> Ended | None:
        """How it ended; None while it goes on, and where it was killed."""
        return next((step for step in reversed(self.steps) if isinstance(step, Ended)), None)

    @property
    def winner_name(self) -> str:
        """Name of the best configuration that is known."""
        if self.ended is not None:
            return self.ended.winner
        raced = [step for step in self.steps if isinstance(step, Raced)]
        return raced[-1].winner if raced else START

    @property
    def winner(self) -> RunOptions:
        """Options of the best configuration that is known, to launch as they are."""
        name = self.winner_name
        picks = [pick for step in self.steps if isinstance(step, Proposed) for pick in step.picks]
        found = next((pick for pick in picks if pick.configuration == name), None)
        return self.options.start if found is None else read_options(found.options)

    @property
    def winner_was_raced(self) -> bool:
        """Whether races say that the winner is the best; one that ran in none is only the model's choice."""
        return self.winner_name == START or has_raced(self.steps, self.winner_name)

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
    def spent_s(self) -> float:
        """What it spent of its budget, s: of trials that ran side by side the mean, which is known when it has ended."""
        return self.ended.spent_s if self.ended is not None else sum(trial.seconds or 0.0 for trial in self.trials)

    @property
    def source(self) -> str:
        """The winner's pipeline as Python source."""
        return render_source(self.winner)

    @property
    def sentence(self) -> str:
        """How it ended, or what was done last, in words."""
        if self.ended is not None:
            return self.ended.sentence
        return describe(self.steps[-1]) if self.steps else "The search has not begun."

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
            "winner_options": self.winner.model_dump(mode="json"),
            "winner_source": self.source,
            "winner_was_raced": self.winner_was_raced,
            "race_command": self.race_command,
            "gain": None if ended is None or ended.winner == START else _met(ended),
            "challenger": None
            if ended is None or ended.challenger == START
            else {"configuration": ended.challenger, "met": _met(ended)},
            "configurations": None if ended is None else ended.configurations,
            "spent_s": self.spent_s,
            "history": [{"step": step.kind, "sentence": describe(step), **asdict(step)} for step in self.steps],
            "trials": [asdict(trial) for trial in self.trials],
        }


def _met(ended: Ended) -> dict[str, Any] | None:
    """Return what the race of the challenger and the start found; None where they did not meet."""
    names = ("ratio", "low", "high", "predicted", "race")
    return None if ended.ratio is None else {name: getattr(ended, name) for name in names}


def read_tuning(folder: RunFolder) -> Tuning:
    """Read a search from its folder, as far as it has come.

    Raises:
        StoreError: The run is no search.
        OptionsError: Its options are damaged.
    """
    record = read_record(folder)
    if record.kind is not RunKind.TUNE:
        raise StoreError(f"Run {folder.id} is no search; `pipeline-lab tune` makes one.")
    trials = tuple(Ledger(folder.trials).read().values())
    return Tuning(folder.path, record, read_tune_options(record.options or {}), read_history(folder.history), trials)


def open_with_searches(what: Recorded | Race | Tuning, store: Path | None = None) -> RecordedRun | Race | Tuning:
    """Open a run, a race, a search or a log.

    Raises:
        TraceReadError: There is no such run, folder or file, or nothing in it can be read.
    """
    if isinstance(what, Tuning):
        return what
    if isinstance(what, str | Path):
        folder = RunFolder(find_path(what, store))
        if folder.record.is_file() and read_record(folder).kind is RunKind.TUNE:
            return read_tuning(folder)
    return open_any(what, store)
