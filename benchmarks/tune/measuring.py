"""Races of many configurations against one reference, a few at a time; stopped and begun again they go on."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pipeline_lab.comparison.race_result import Race, read_race
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.deciding import MOST_CANDIDATES
from pipeline_lab.tuning.executors.executor import Trial, Watch
from pipeline_lab.tuning.executors.local import LocalExecutor
from pipeline_lab.tuning.halving import LEADER, Ratio
from pipeline_lab.tuning.trials import TrialLedger, Trials
from pipeline_lab.units import NS_PER_MS

RACE_S = 100.0
"""About what a race of eight arms takes."""


class Clock:
    """Ends the program before a piece of work that does not fit into its time.

    Args:
        limit_s: The time.
    """

    def __init__(self, limit_s: float) -> None:
        self._until_s = time.monotonic() + limit_s

    def begin(self, words: str, expected_s: float) -> None:
        """Begin a piece that takes about so long.

        Raises:
            SystemExit: It would not be over in time.
        """
        if time.monotonic() + expected_s > self._until_s:
            raise SystemExit(f"No time is left for the next piece ({words}); the same command goes on with it.")
        print(f"  {words} …", flush=True)


class _WithinTime(LocalExecutor):
    """Begins only races that the clock has time for."""

    def __init__(self, store: RunStore, clock: Clock) -> None:
        super().__init__(store)
        self._clock, self._longest_s = clock, RACE_S

    def run(self, trials: Sequence[Trial], watch: Watch) -> None:
        for trial in trials:
            self._clock.begin(f"race “{trial.options.name}”", self._longest_s)
            begun_s = time.monotonic()
            super().run([trial], watch)
            self._longest_s = max(self._longest_s, time.monotonic() - begun_s)


class Measuring:
    """Measures configurations as ratios; every race is kept."""

    def __init__(self, store: RunStore, ledger: Path, clock: Clock) -> None:
        self._store = store
        self._trials = Trials(TrialLedger(ledger), _WithinTime(store, clock), lambda: False)
        self._reference_ms: list[float] = []

    @property
    def spent_s(self) -> float:
        return self._trials.spent_s

    def describe_reference(self) -> str:
        """Say how the reference's own step differed between races, which their ratios leave out."""
        low, high = min(self._reference_ms), max(self._reference_ms)
        return f"A step of the reference took {low:.2f} to {high:.2f} ms (races: {len(self._reference_ms)})."

    def race_all(
        self, title: str, reference: RunOptions, others: Mapping[str, RunOptions], pairs: int
    ) -> dict[str, Ratio]:
        """Return each configuration's time over the reference's; those that did not run are left out."""
        names, found = list(others), {}
        for first in range(0, len(names), MOST_CANDIDATES):
            group = names[first : first + MOST_CANDIDATES]
            race = RaceOptions(
                name=f"{title} {first // MOST_CANDIDATES + 1}",
                arms=tuple(_plain(each) for each in (reference, *(others[name] for name in group))),
                pairs=pairs,
                max_seconds=900,
                warmup_seconds=30,
                margin_percent=1.0,
            )
            (line,) = self._trials.run([race])
            print(f"  {title}: {first + len(group)} of {len(names)}, {self.spent_s / 60:.1f} min so far", flush=True)
            if not line.failure:
                found |= dict(zip(group, self._ratios(line.run), strict=True))
        return found

    def _ratios(self, run: str) -> list[Ratio]:
        race = self._read(run)
        self._reference_ms.append(race.arms[0].step_ns / NS_PER_MS)
        ratios = []
        for candidate in race.candidates:
            result, paired = candidate.standing.result, candidate.paired
            if result is not None:
                ratios.append(Ratio(result.ratio, result.low, result.high))
            else:
                ratios.append(Ratio(paired.ratio, paired.low, paired.high) if paired else LEADER)
        return ratios

    def _read(self, run: str) -> Race:
        try:
            return read_race(self._store.folder(run))
        except PipelineLabError as error:
            raise SystemExit(f"{run} cannot be read: {error}") from None


def _plain(options: RunOptions) -> RunOptions:
    """Leave out the profile windows: here only times count."""
    return options.model_copy(update={"profiling": options.profiling.model_copy(update={"enabled": False})})
