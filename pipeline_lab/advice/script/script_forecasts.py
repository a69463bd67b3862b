"""Predictions for a watched script as documents: what was measured, and what each change would bring."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pipeline_lab.advice.script.script_model import ScriptPrediction, explain_script, predict_change
from pipeline_lab.advice.script.script_run import ScriptRun, take_script
from pipeline_lab.analysis.declaring.declaration import to_ms
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import StoreError, Unavailable
from pipeline_lab.pipeline.change_words import before_after
from pipeline_lab.pipeline.changes import Change
from pipeline_lab.pipeline.recipe import Recipe, read_recipe
from pipeline_lab.pipeline.rewrites import find_changes
from pipeline_lab.runs.run_folder import RunFolder

SCHEMA_VERSION = 1
NO_RECIPE = (
    "The run does not say what its pipeline was made of, so no change of it can be predicted; put `pipeline-lab watch` before "
    "your script, or run a preset with `pipeline-lab run`."
)


@dataclass(frozen=True)
class ChangeForecast:
    """A change of a script, and what it would bring.

    Attributes:
        change: What to do.
        before, after: The call as it is and as it would be.
        prediction: Why there is none, where the run does not tell.
    """

    change: Change
    before: str
    after: str
    prediction: ScriptPrediction | Unavailable


def recipe_of(folder: RunFolder) -> Recipe | Unavailable:
    """Return the recipe of a run's script; why there is none."""
    try:
        found = read_recipe(folder.recipe)
    except StoreError as error:
        return Unavailable(str(error))
    return found if found is not None and found.calls else Unavailable(NO_RECIPE)


def measure_script(diagnosis: Diagnosis, recipe: Recipe) -> ScriptRun | Unavailable:
    """Make a watched run ready to be asked about changes; why not, where the model cannot account for it."""
    taken = take_script(diagnosis, recipe)
    return taken if isinstance(taken, Unavailable) else explain_script(taken)


def forecast_changes(run: ScriptRun, changes: Sequence[Change] | None = None) -> tuple[ChangeForecast, ...]:
    """Predict changes one by one, the best first; by default all that apply to the script."""
    chosen = find_changes(run.recipe) if changes is None else changes
    found = [
        ChangeForecast(each, *before_after(run.recipe, each), prediction=predict_change(run, each.edits))
        for each in chosen
    ]
    return tuple(sorted(found, key=lambda each: -_gain(each.prediction)))


def _gain(prediction: ScriptPrediction | Unavailable) -> float:
    return float("-inf") if isinstance(prediction, Unavailable) else prediction.gain_percent


def write_script_forecast(
    run_id: str,
    run: ScriptRun,
    changes: Sequence[ChangeForecast],
    together: ScriptPrediction | Unavailable | None,
) -> dict[str, Any]:
    """Return what a watched run measured and what changes would bring; times in ms, shares in percent.

    Args:
        run_id: Of the run.
        run: What it measured.
        changes: Each by itself.
        together: The prediction for all of them at once; None where there is one at most.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "run": run_id,
        "measured": _measured(run),
        "changes": [_change(each) for each in changes],
        "prediction": None if together is None else _prediction(together),
    }


def _measured(run: ScriptRun) -> dict[str, Any]:
    return {
        "step_ms": to_ms(run.step_ns),
        "ceiling_ms": to_ms(run.ceiling_ns),
        "calibrated": run.is_calibrated,
        "noise_percent": run.noise_percent,
        "cores": run.cores,
        "other_cores": run.other_cores,
        "pool_threads": run.pool_threads,
        "stages": [
            {
                "stage": stage.name,
                "words": stage.words,
                "ms_per_batch": to_ms(stage.work_ns),
                "elements_per_batch": stage.visits,
                "at_once": stage.at_once,
                "python_percent": 100.0 * stage.python_share,
            }
            for stage in run.stages
        ],
    }


def _change(forecast: ChangeForecast) -> dict[str, Any]:
    change = forecast.change
    return {
        "rewrite": change.rewrite,
        "words": change.words,
        "place": change.place and asdict(change.place),
        "before": forecast.before,
        "after": forecast.after,
        "effect": change.effect.name.lower(),
        "risk": change.risk.value,
        "side_effects": list(change.also),
        "prediction": _prediction(forecast.prediction),
    }


def _prediction(found: ScriptPrediction | Unavailable) -> dict[str, Any]:
    if isinstance(found, Unavailable):
        return found.to_json()
    return {
        "step_ms": to_ms(found.step_ns),
        "gain_percent": found.gain_percent,
        "gain_range_percent": [found.low_percent, found.high_percent],
        "quiet_gain_percent": found.quiet_percent,
        "terms": [{"name": term.name, "ms": to_ms(term.time_ns)} for term in found.terms],
        "notes": list(found.notes),
    }
