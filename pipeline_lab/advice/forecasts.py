"""Predictions as documents, and those that were raced: what was said before, what came out, how far off that was."""

import contextlib
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_lab.advice.measured_run import Measured
from pipeline_lab.advice.option_changes import name_change, option_changes, source_diff
from pipeline_lab.advice.what_if import Prediction, predict
from pipeline_lab.analysis.declaring.declaration import to_ms
from pipeline_lab.comparison.race_arms import name_arms
from pipeline_lab.comparison.racing import choose_race
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import OptionsError, StoreError, Unavailable
from pipeline_lab.options.race_options import RaceOptions, read_recorded_race
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.race_standings import find_standings, read_rounds
from pipeline_lab.runs.record import RunKind
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.run_tables import BLOCKS, read_table
from pipeline_lab.runs.store import RunStore
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
    return after.ns_per_example / before.ns_per_example  # as the race compares them


def read_forecasts(store: RunStore) -> tuple[Forecast, ...]:
    """Return every prediction of a store that a race has answered, the newest race first."""
    found: list[Forecast] = []
    for record in store.runs():
        if record.kind is RunKind.RACE:
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
    if not options.predicted_ratios:
        return ()
    rounds = read_rounds(read_table(folder.blocks, BLOCKS), options.arm_count)
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


SCHEMA_VERSION = 1


def write_prediction(
    run_id: str, measured: Measured | Unavailable, options: RunOptions, prediction: Prediction | Unavailable
) -> dict[str, Any]:
    """Return what a run measured and what is predicted of changed options; times in ms, shares in percent."""
    if isinstance(measured, Unavailable):
        return write_unpredicted(run_id, measured)
    return {
        "schema_version": SCHEMA_VERSION,
        "run": run_id,
        "measured": _measured(measured),
        "option_changes": list(option_changes(measured.options, options)),
        "source_diff": source_diff(measured.options, options),
        "prediction": prediction.to_json()
        if isinstance(prediction, Unavailable)
        else _prediction(prediction, measured),
    }


def write_unpredicted(run_id: str, why: Unavailable) -> dict[str, Any]:
    """Return the same of a run of which nothing can be predicted, whatever the change."""
    return {
        "schema_version": SCHEMA_VERSION,
        "run": run_id,
        "measured": why.to_json(),
        "option_changes": [],
        "source_diff": "",
        "prediction": why.to_json(),
    }


def write_forecasts(forecasts: Sequence[Forecast]) -> dict[str, Any] | None:
    """Return all predictions of a store that were raced, and how far off they were; None where there is none."""
    if not forecasts:
        return None
    return {**asdict(score(forecasts)), "predictions": [asdict(forecast) for forecast in forecasts]}


def _measured(measured: Measured) -> dict[str, Any]:
    return {
        "step_ms": to_ms(measured.step_ns),
        "device_only_ms": to_ms(measured.device_only_ns),
        "between_ms": to_ms(measured.between_ns),
        "noise_percent": measured.noise_percent,
        "from_step": measured.from_step,
        "cores": measured.cores,
        "other_cores": measured.other_cores,
        "stages": [
            {
                "stage": cost.stage,
                "ms_per_example": to_ms(cost.ns_per_example),
                "cpu_ms_per_example": to_ms(cost.cpu_ns_per_example),
            }
            for cost in measured.stages
        ],
    }


def _prediction(prediction: Prediction, measured: Measured) -> dict[str, Any]:
    memory = prediction.memory_bytes
    return {
        "step_ms": to_ms(prediction.step_ns),
        "gain_percent": prediction.gain_percent(measured),
        "ceiling_ms": to_ms(prediction.ceiling_ns),
        "terms": [{"name": term.name, "ms": to_ms(term.time_ns)} for term in prediction.terms],
        "memory_bytes": memory.to_json() if isinstance(memory, Unavailable) else memory,
        "threads": prediction.threads,
        "notes": list(prediction.notes),
        "assumed": list(prediction.assumed),
    }
