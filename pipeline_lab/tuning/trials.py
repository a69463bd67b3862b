"""Runs and races on behalf of a search, each asked for once in its life.

Every trial is written down when it starts and when it is over (``trials.jsonl``). A search that is resumed asks for the
same trials in the same order; those that are over are answered from there, and one that outlived the search's process is
waited for. So a search is a function of its trials' answers, and a kill costs the trial that was under way at most.
"""

import hashlib
import json
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.store import write_whole
from pipeline_lab.tuning.executors.executor import Executor, Finished, Trial


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
