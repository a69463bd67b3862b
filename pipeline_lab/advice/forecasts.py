"""Predictions that were raced: what was said before, what came out, and how far off that was over a whole store."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_lab.advice.changes import name_change
from pipeline_lab.advice.measured import Measured
from pipeline_lab.advice.what_if import Prediction, predict
from pipeline_lab.comparison.race_arms import name_arms
from pipeline_lab.comparison.racing import choose_race
from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.options.race_options import RaceOptions, read_recorded_race
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.record import RunKind
from pipeline_lab.runs.run_tables import BLOCKS, read_table
from pipeline_lab.runs.standings import find_standings, read_rounds
from pipeline_lab.runs.store import RunFolder, RunStore, read_record
from pipeline_lab.units import format_percent


@dataclass(frozen=True)
class Forecast:
    """One candidate that was predicted and then raced; ratios are over the baseline's, of the time that the race compared.

    Attributes:
        race_id, race: The race that it was a candidate of.
        name: Of the candidate.
        predicted: Ratio that was predicted.
        ratio, low, high: Ratio that was raced, with the bounds of its interval.
    """

    race_id: str
    race: str
    name: str
    predicted: float
    ratio: float
    low: float
    high: float

    @property
    def error_percent(self) -> float:
        """How far the prediction lies outside of the raced interval, percent of the nearer bound."""
        return 100.0 * max(0.0, self.predicted / self.high - 1.0, self.low / self.predicted - 1.0)


@dataclass(frozen=True)
class Accuracy:
    """How far predictions were off.

    Attributes:
        count: How many were raced.
        median_percent, p90_percent: Errors beyond the races' own intervals.
        right_direction: How many said rightly whether the change makes the step shorter.
    """

    count: int
    median_percent: float
    p90_percent: float
    right_direction: int

    @property
    def sentence(self) -> str:
        """How far off, in words."""
        return (
            f"Predictions of this store that were raced: {self.count}. Beyond the races' own intervals they were off by "
            f"{format_percent(self.median_percent)} (median) and {format_percent(self.p90_percent)} (90th percentile); the "
            f"direction was right in {self.right_direction}."
        )


def plan_race(measured: Measured, candidates: Sequence[RunOptions], **settings: Any) -> RaceOptions:
    """Return a race of a run's options against changed ones, with what is predicted of each.

    Raises:
        OptionsError: They cannot race; the text says why.
    """
    return plan_race_of(measured.options, candidates, measured, **settings)


def plan_race_of(
    baseline: RunOptions, candidates: Sequence[RunOptions], measured: Measured | None, **settings: Any
) -> RaceOptions:
    """Return a race with what is predicted of each candidate.

    Args:
        baseline, candidates: What races.
        measured: A run that can tell; None where there is none, and nothing is predicted.
        settings: Fields of a race's options.

    Raises:
        OptionsError: They cannot race; the text says why.
    """
    named = [each.model_copy(update={"name": name_change(baseline, each)}) for each in candidates]
    ratios = [] if measured is None else [_ratio(measured, baseline, each) for each in candidates]
    return choose_race([baseline, *named], predicted_ratios=ratios, **settings)


def _ratio(measured: Measured, baseline: RunOptions, candidate: RunOptions) -> float | None:
    before, after = predict(measured, baseline), predict(measured, candidate)
    if not isinstance(before, Prediction) or not isinstance(after, Prediction):
        return None
    return after.ms_per_example / before.ms_per_example  # as the race compares them


def read_forecasts(store: RunStore) -> tuple[Forecast, ...]:
    """Return every prediction of a store that a race has answered, the newest race first."""
    found: list[Forecast] = []
    for record in store.runs():
        if record.kind is RunKind.RACE and (record.options or {}).get("predicted_ratios"):
            with contextlib.suppress(StoreError, OSError):  # deleted just now, or without a round
                folder = store.folder(record.id)
                changed_ns = tuple(file.stat().st_mtime_ns for file in (folder.record, folder.blocks))
                found += _forecasts_of(folder.path, changed_ns)
    return tuple(found)


@lru_cache(maxsize=2000)
def _forecasts_of(path: Path, _changed_ns: tuple[int, ...]) -> tuple[Forecast, ...]:
    """Return what a race answered, by its files as they were changed last."""
    folder = RunFolder(path)
    record = read_record(folder)
    try:
        options = read_recorded_race(record.options or {})
    except OptionsError:
        return ()
    rounds = read_rounds(read_table(folder.blocks, BLOCKS), len(options.arms))
    found = []
    for standing in find_standings(rounds, options):
        result, predicted = standing.result, options.predicted_ratio(standing.arm)
        if result is None or predicted is None or not (result.low > 0 and np.isfinite(result.high)):
            continue
        name = name_arms(options)[standing.arm]
        found.append(Forecast(record.id, record.name, name, predicted, result.ratio, result.low, result.high))
    return tuple(found)


def score(forecasts: Sequence[Forecast]) -> Accuracy:
    """Sum up how far predictions were off; there is at least one."""
    errors = [forecast.error_percent for forecast in forecasts]
    return Accuracy(
        count=len(errors),
        median_percent=float(np.median(errors)),
        p90_percent=float(np.percentile(errors, 90)),
        right_direction=sum((forecast.predicted < 1) == (forecast.ratio < 1) for forecast in forecasts),
    )
