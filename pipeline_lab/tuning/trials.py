"""Runs and races on behalf of a search, each asked for once, and the time that they may still take.

Every trial is written down when it starts and when it is over (``trials.jsonl``). A search that is resumed asks for the
same trials in the same order; those that are over are answered from there, and one that outlived the search's process is
waited for. So a search is a function of its trials' answers, and a kill costs the trial that was under way at most.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.run_events import CalibrationEvent, PhaseEvent, read_events
from pipeline_lab.runs.store import RunFolder, read_record, write_whole
from pipeline_lab.tuning.executors.executor import Executor, Finished, Trial
from pipeline_lab.units import NS_PER_S


@dataclass(frozen=True)
class TrialLine:
    """One line of the ledger.

    Attributes:
        key: Of what was asked.
        run: The run that answers; it lies in the store of the search.
        machine: Where it was measured; empty while it is under way.
        seconds: How long it took; None while it is under way.
        failure: Why there is no answer, or empty.
    """

    key: str
    run: str
    machine: str = ""
    seconds: float | None = None
    failure: str = ""


class Ledger:
    """``trials.jsonl``: append-only; a torn last line is ignored, and the last line of a key counts."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, TrialLine]:
        """Return what is known of each trial, in the order in which they began."""
        known: dict[str, TrialLine] = {}
        names = {each.name for each in fields(TrialLine)}
        for line in self._lines():
            try:
                document = json.loads(line)
                found = TrialLine(**{name: value for name, value in document.items() if name in names})
            except (ValueError, TypeError, AttributeError):
                continue
            known[found.key] = found
        return known

    def write(self, line: TrialLine) -> None:
        """Append a line; one that a kill tore is closed first, so that it spoils no other."""
        with self._path.open("ab+") as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                if file.read() != b"\n":
                    file.write(b"\n")
            file.write(_written(line).encode())

    def forget(self, keys: Collection[str]) -> None:
        """Leave trials out, so that they are measured when they are asked for again."""
        write_whole(self._path, "".join(_written(line) for line in self.read().values() if line.key not in keys))

    def _lines(self) -> list[str]:
        try:
            return self._path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
        except FileNotFoundError:
            return []


def _written(line: TrialLine) -> str:
    return json.dumps(asdict(line), ensure_ascii=False) + "\n"


class Trials:
    """Answers what a search asks, from the ledger or by an executor."""

    def __init__(self, ledger: Ledger, executor: Executor, should_stop: Callable[[], bool]) -> None:
        self._ledger, self._executor, self.should_stop = ledger, executor, should_stop
        self._known = ledger.read()
        self._spent_s = 0.0

    @property
    def machines(self) -> int:
        """How many trials can be measured at the same time."""
        return self._executor.machines

    @property
    def spent_s(self) -> float:
        """Time that the trials asked for so far took, s; the same after a resume as before."""
        return self._spent_s

    def run(self, asked: Sequence[RunOptions | RaceOptions]) -> list[TrialLine]:
        """Return how each trial ended, in the order in which they were asked for.

        Raises:
            SearchStoppedError: Somebody asked the search to stop.
        """
        trials = [self._trial(options) for options in asked]
        missing = [trial for trial in trials if not self._is_over(trial)]
        if missing:
            self._executor.run(missing, self)
        lines = [self._known[trial.key] for trial in trials]
        at_once = max(1, min(self.machines, len(lines)))
        self._spent_s += sum(line.seconds or 0.0 for line in lines) / at_once
        return lines

    def begun(self, trial: Trial, run_id: str) -> None:
        """Write down that a run holds a trial."""
        self._note(TrialLine(trial.key, run_id))

    def ended(self, trial: Trial, finished: Finished) -> None:
        """Write down how a trial ended."""
        self._note(TrialLine(trial.key, finished.run_id, finished.machine, finished.seconds, finished.failure))

    def _trial(self, options: RunOptions | RaceOptions) -> Trial:
        key = hashlib.sha256(options.to_json().encode()).hexdigest()[:20]
        known = self._known.get(key)
        return Trial(key, options, known.run if known else None)

    def _is_over(self, trial: Trial) -> bool:
        return trial.key in self._known and self._known[trial.key].seconds is not None

    def _note(self, line: TrialLine) -> None:
        self._ledger.write(line)
        self._known[line.key] = line


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
class TrialCosts:
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


class TimeBudget:
    """What may be spent. Nothing is begun that does not fit, by what trials of this search took."""

    def __init__(self, total_s: float, trials: Trials) -> None:
        self._total_s, self._trials = total_s, trials
        self.costs = TrialCosts()
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


def read_costs(folder: RunFolder) -> TrialCosts:
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
        return TrialCosts()
    once_s = begun_s["building"] - status.started_s + status.ended_s - begun_s["finishing"]
    return TrialCosts(max(0.0, once_s), max(0.0, begun_s["training"] - begun_s["building"] - first_batch_s))
