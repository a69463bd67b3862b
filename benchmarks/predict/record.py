"""Run each workload once, predict every change from that run, and race the changes against it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.predict.plan import Change, Plan
from pipeline_lab import analyze, race, run
from pipeline_lab.advice.measured_run import Measured
from pipeline_lab.advice.what_if import Prediction, measure_run, predict
from pipeline_lab.errors import PipelineLabError, Unavailable
from pipeline_lab.options.run_options import read_options
from pipeline_lab.runs.record import RunKind
from pipeline_lab.runs.store import RunStore
from pipeline_lab.units import NS_PER_MS


@dataclass(frozen=True)
class Outcome:
    """One change: step times over the baseline's.

    Attributes:
        workload, change: Of the plan.
        predicted: Ratio; None where the model does not cover the change.
        binding: The term that binds in the prediction, or why there is none.
        ratio, low, high: As raced, with the bounds of the 95 % interval; None where the race was too short.
    """

    workload: str
    change: str
    predicted: float | None
    binding: str
    ratio: float | None
    low: float | None
    high: float | None

    @property
    def is_known(self) -> bool:
        return None not in (self.predicted, self.ratio, self.low, self.high)


@dataclass(frozen=True)
class Race:
    """How long the races may be."""

    arms: int = 5
    pairs: int = 12
    block_steps: int = 10
    max_seconds: float = 90.0
    max_extra_load_percent: float = 25.0


def record(plan: Plan, store: RunStore, output: Path, limits: Race, *, suggested: bool) -> Iterator[Outcome]:
    """Yield the outcome of each change as soon as its race is over; they are also added to ``output``.

    Args:
        plan: What to change.
        store: Where runs and races go.
        output: Lines of JSON.
        limits: Of the races.
        suggested: Race what the lab suggests for the run instead of the plan's changes.
    """
    folder = run(plan.baseline, store).folder
    measured = measure_run(folder)
    if isinstance(measured, Unavailable):
        print(f"{plan.name}: {measured.reason}", flush=True)
        return
    print(_describe(plan, measured), flush=True)
    if suggested:
        plan = replace(plan, changes=_suggestions(folder.path))
    for first in range(0, len(plan.changes), limits.arms):
        changes = plan.changes[first : first + limits.arms]
        predictions = [predict(measured, change.options) for change in changes]
        for outcome in _race(plan, measured, changes, predictions, store, limits):
            with output.open("a") as file:
                file.write(json.dumps(asdict(outcome)) + "\n")
            yield outcome


def _suggestions(path: Path) -> tuple[Change, ...]:
    """Return what the lab suggests for a run, where options do it."""
    found = [each for each in analyze(path).verdict.suggestions if each.options is not None]
    return tuple(Change(each.change, read_options({**each.options, "name": each.change[:200]})) for each in found)


def read(output: Path) -> list[Outcome]:
    """Return the outcomes that were recorded before."""
    return [Outcome(**json.loads(line)) for line in output.read_text().splitlines()] if output.exists() else []


def predict_again(outcomes: Sequence[Outcome], plans: Sequence[Plan], store: RunStore) -> list[Outcome]:
    """Return recorded outcomes with what is predicted today from the latest run of each workload."""
    found: list[Outcome] = []
    for plan in plans:
        changes = {change.name: change for change in plan.changes}
        raced = [outcome for outcome in outcomes if outcome.workload == plan.name and outcome.change in changes]
        if not raced:
            continue
        latest = next(each.id for each in store.runs() if each.kind is RunKind.RUN and each.name == plan.name)
        measured = measure_run(store.folder(latest))
        found += [replace(outcome, **_predict_one(measured, changes[outcome.change])) for outcome in raced]
    return found


def _predict_one(measured: Measured | Unavailable, change: Change) -> dict[str, Any]:
    """Return what is predicted of a change; a run that no longer explains itself predicts nothing, and says why."""
    if isinstance(measured, Unavailable):
        return {"predicted": None, "binding": measured.reason}
    return _predicted(predict(measured, change.options), measured)


def _predicted(prediction: Prediction | Unavailable, measured: Measured) -> dict[str, Any]:
    if isinstance(prediction, Unavailable):
        return {"predicted": None, "binding": prediction.reason}
    return {"predicted": prediction.step_ns / measured.step_ns, "binding": prediction.terms[0].name}


def _race(
    plan: Plan,
    measured: Measured,
    changes: Sequence[Change],
    predictions: Sequence[Prediction | Unavailable],
    store: RunStore,
    limits: Race,
) -> Iterator[Outcome]:
    try:
        found = race(
            plan.baseline,
            *(change.options for change in changes),
            store=store,
            pairs=limits.pairs,
            block_steps=limits.block_steps,
            max_seconds=limits.max_seconds,
            max_extra_load_percent=limits.max_extra_load_percent,
            margin_percent=1.0,
        )
        results = [candidate.standing.result for candidate in found.candidates]
    except PipelineLabError as error:
        print(f"{plan.name}: {error}", flush=True)
        results = [None] * len(changes)
    for change, prediction, result in zip(changes, predictions, results, strict=True):
        yield Outcome(
            workload=plan.name,
            change=change.name,
            **_predicted(prediction, measured),
            ratio=None if result is None else result.ratio,
            low=None if result is None else result.low,
            high=None if result is None else result.high,
        )


def _describe(plan: Plan, measured: Measured) -> str:
    return (
        f"{plan.name}: step {measured.step_ns / NS_PER_MS:.1f} ms ± {measured.noise_percent:.0f} %, "
        f"alone {measured.device_only_ns / NS_PER_MS:.1f} ms; pipeline × {measured.pipeline_factor:.2f}, processor × {measured.cpu_factor:.2f}, others took "
        f"{measured.other_cores:.2f} cores"
    )
