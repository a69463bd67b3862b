"""Races of many configurations against one reference, a few at a time; stopped and begun again they go on."""

from collections.abc import Mapping
from pathlib import Path

from pipeline_lab.comparison.race_result import read_race
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.deciding import MOST_CANDIDATES
from pipeline_lab.tuning.executors.local import LocalExecutor
from pipeline_lab.tuning.halving import LEADER, Ratio
from pipeline_lab.tuning.trials import TrialLedger, Trials


class Measuring:
    """Measures configurations as ratios; every race is kept."""

    def __init__(self, store: RunStore, ledger: Path) -> None:
        self._store = store
        self._trials = Trials(TrialLedger(ledger), LocalExecutor(store), lambda: False)

    @property
    def spent_s(self) -> float:
        return self._trials.spent_s

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
        try:
            candidates = read_race(self._store.folder(run)).candidates
        except PipelineLabError as error:
            raise SystemExit(f"{run} cannot be read: {error}") from None
        ratios = []
        for candidate in candidates:
            result, paired = candidate.standing.result, candidate.paired
            if result is not None:
                ratios.append(Ratio(result.ratio, result.low, result.high))
            else:
                ratios.append(Ratio(paired.ratio, paired.low, paired.high) if paired else LEADER)
        return ratios


def _plain(options: RunOptions) -> RunOptions:
    """Leave out the profile windows: here only times count."""
    return options.model_copy(update={"profiling": options.profiling.model_copy(update={"enabled": False})})
