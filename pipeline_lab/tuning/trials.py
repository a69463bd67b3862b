"""Runs and races of a search, each measured once, and the time that they may still take.

Every trial is recorded when it starts and when it ends (``trials.jsonl``). A resumed search requests the same trials in
the same order; finished ones are answered from the record, and one that outlived the search's process is waited for. So a
search is a function of its trials' answers, and a kill costs at most the trial in progress.
"""

import hashlib
import json
import math
import os
import platform
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import RunFailedError
from pipeline_lab.options.race_options import AnyRace
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.run_events import LAST_PHASE, CalibrationEvent, PhaseEvent, read_events
from pipeline_lab.runs.run_folder import RunFolder, read_record, write_whole
from pipeline_lab.tuning.executors.executor import Executor, Finished, ScriptFiles, Trial
from pipeline_lab.units import NS_PER_S


@dataclass(frozen=True)
class TrialLine:
    """One line of the ledger.

    Attributes:
        key: Of what was asked.
        run: The run that answers, in the store of the search.
        machine: Where it was measured; empty while it is in progress.
        seconds: How long it took; None while it is in progress.
        failure: Why there is no answer, or empty.
    """

    key: str
    run: str
    machine: str = ""
    seconds: float | None = None
    failure: str = ""


class TrialLedger:
    """``trials.jsonl``: append-only; an incomplete last line is ignored, and the last line of a key counts."""

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
        """Append a line; an incomplete last line is closed first."""
        with self._path.open("ab+") as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                if file.read() != b"\n":
                    file.write(b"\n")
            file.write(_written(line).encode())

    def forget(self, keys: Collection[str]) -> None:
        """Remove trials, so that they are measured again when requested."""
        write_whole(self._path, "".join(_written(line) for line in self.read().values() if line.key not in keys))

    def _lines(self) -> list[str]:
        try:
            return self._path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
        except FileNotFoundError:
            return []


def _written(line: TrialLine) -> str:
    return json.dumps(asdict(line), ensure_ascii=False) + "\n"


class Trials:
    """Answers a search's requests, from the ledger or through an executor."""

    def __init__(self, ledger: TrialLedger, executor: Executor, should_stop: Callable[[], bool]) -> None:
        self._ledger, self._executor, self.should_stop = ledger, executor, should_stop
        self._known = ledger.read()
        self._spent_s = 0.0

    @property
    def machines(self) -> int:
        """How many trials can be measured at the same time."""
        return self._executor.machines

    def check(self, needed: RunOptions | ScriptFiles) -> None:
        """Make sure that every machine has what is to be measured; see :class:`Executor`."""
        self._executor.check(needed)

    @property
    def spent_s(self) -> float:
        """Time that the requested trials took so far, s; the same before and after a resume."""
        return self._spent_s

    def run(self, asked: Sequence[RunOptions | AnyRace]) -> list[TrialLine]:
        """Return how each trial ended, in the order of the requests.

        Raises:
            SearchStoppedError: The search was asked to stop.
        """
        trials = [self._trial(options) for options in asked]
        missing = [trial for trial in trials if not self._is_over(trial)]
        if missing:
            self._executor.run(missing, self)
        lines = [self._known[trial.key] for trial in trials]
        at_once = max(1, min(self.machines, len(lines)))
        self._spent_s += sum(line.seconds or 0.0 for line in lines) / at_once
        return lines

    def known(self) -> list[TrialLine]:
        """Return every trial so far, in the order in which they began."""
        return list(self._known.values())

    def spend(self, seconds: float) -> None:
        """Count time that something else than a trial took."""
        self._spent_s += seconds

    def measure(self, key: str, record: Callable[[], RunFolder]) -> TrialLine:
        """Return what was recorded under a key, now or before.

        Args:
            key: Tells it from every other trial of the search.
            record: Records a run of the store; what it raises is why it failed.
        """
        known = self._known.get(key)
        if known is None or known.seconds is None:
            begun_s = time.monotonic()
            run, failure = "", ""
            try:
                run = record().id
            except RunFailedError as error:
                failure = str(error)
            known = TrialLine(key, run, platform.node(), time.monotonic() - begun_s, failure)
            self._note(known)
        self._spent_s += known.seconds or 0.0
        return known

    def begun(self, trial: Trial, run_id: str) -> None:
        """Record that a run holds a trial."""
        self._note(TrialLine(trial.key, run_id))

    def ended(self, trial: Trial, finished: Finished) -> None:
        """Record how a trial ended."""
        self._note(TrialLine(trial.key, finished.run_id, finished.machine, finished.seconds, finished.failure))

    def _trial(self, options: RunOptions | AnyRace) -> Trial:
        key = hashlib.sha256(options.to_json().encode()).hexdigest()[:20]
        known = self._known.get(key)
        return Trial(key, options, known.run if known else None)

    def _is_over(self, trial: Trial) -> bool:
        return trial.key in self._known and self._known[trial.key].seconds is not None

    def _note(self, line: TrialLine) -> None:
        self._ledger.write(line)
        self._known[line.key] = line


LAST_RACE_SHARE = 0.25
"""Share of the budget that is kept for the race of the winner against the start."""
LONGEST_RACE_S = 600.0
SHORTEST_RACE_S = 15.0
"""Shorter rounds say little."""
WARMUP_S, LEAST_WARMUP_S = 30.0, 1.0
SPARE_SHARE = 0.1
"""Added to what was measured: times vary, and a larger budget also allows longer runs."""
WARMUP_SHARE = 0.25
"""Of a race's time, what warming up may take."""


@dataclass(frozen=True)
class TrialCosts:
    """What a trial takes in addition to its requested run time, s.

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
    """What may be spent. Nothing starts that does not fit, judging by earlier trials of this search."""

    def __init__(self, total_s: float, trials: Trials) -> None:
        self._total_s, self._trials = total_s, trials
        self.costs = TrialCosts()
        """From the last run that was profiled."""
        self.look_s = 0.0
        """Total time of that run."""

    @property
    def left_s(self) -> float:
        return self._total_s - self._trials.spent_s

    @property
    def kept_s(self) -> float:
        """Time that is kept for the last race."""
        return max(LAST_RACE_SHARE * self._total_s, self.race_s(2))

    @property
    def most_arms(self) -> int:
        """Arms of the largest race that may start now; below 2 if there is time for the last race only."""
        each_s = self.costs.each_s + LEAST_WARMUP_S
        on_one = int((self.left_s - self.kept_s - self.race_s(0)) / each_s)
        return 1 + (on_one - 1) * self._trials.machines if on_one > 1 else 0

    @property
    def has_a_round(self) -> bool:
        """Say whether another leader can be profiled and raced."""
        return self.left_s - self.kept_s >= self.look_s + self.race_s(2)

    @property
    def least_s(self) -> float:
        """A budget that would have sufficed for the last race, in tens of seconds."""
        return self.total_with_s(self.race_s(2))

    @property
    def least_to_begin_s(self) -> float:
        """A budget that would have sufficed for a race of two beside the time that is kept, in tens of seconds."""
        beside_s = self._trials.spent_s + self.race_s(2)
        kept_s = max(self.race_s(2), LAST_RACE_SHARE / (1 - LAST_RACE_SHARE) * beside_s)
        return self.total_with_s(self.race_s(2) + kept_s)

    def total_with_s(self, more_s: float) -> float:
        """Return the budget that would have had so much more time for what was measured, in tens of seconds."""
        return 10.0 * math.ceil((1 + SPARE_SHARE) * (self._trials.spent_s + more_s) / 10)

    def race_s(self, arms: int) -> float:
        """Return the least time that a race of that many arms takes."""
        return self.costs.once_s + arms * (self.costs.each_s + LEAST_WARMUP_S) + SHORTEST_RACE_S

    def divide(self, arms: int, time_s: float) -> RaceTime:
        """Return what rounds and warm-up of a race may take, so that it is over after ``time_s``."""
        free_s = time_s - self.costs.once_s - arms * self.costs.each_s
        most_s = min(WARMUP_S, WARMUP_SHARE * free_s / arms, (free_s - SHORTEST_RACE_S) / arms)
        warmup_s = max(LEAST_WARMUP_S, most_s)
        return RaceTime(min(LONGEST_RACE_S, max(SHORTEST_RACE_S, free_s - arms * warmup_s)), warmup_s)


def read_costs(folder: RunFolder) -> TrialCosts:
    """Return what a run took in addition to its training; nothing if it did not record its phases.

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
    if status.started_s is None or status.ended_s is None or not {"building", "training", LAST_PHASE} <= begun_s.keys():
        return TrialCosts()
    once_s = begun_s["building"] - status.started_s + status.ended_s - begun_s[LAST_PHASE]
    return TrialCosts(max(0.0, once_s), max(0.0, begun_s["training"] - begun_s["building"] - first_batch_s))
