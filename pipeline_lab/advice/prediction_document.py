"""A prediction as JSON, as ``pipeline-lab what-if --json`` prints it."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pipeline_lab.advice.changes import option_changes, source_diff
from pipeline_lab.advice.forecasts import Forecast, score
from pipeline_lab.advice.measured import Measured
from pipeline_lab.advice.what_if import Prediction
from pipeline_lab.errors import Unavailable
from pipeline_lab.options.run_options import RunOptions

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
        "step_ms": measured.step_ms,
        "device_only_ms": measured.device_only_ms,
        "between_ms": measured.between_ms,
        "noise_percent": measured.noise_percent,
        "from_step": measured.from_step,
        "cores": measured.cores,
        "other_cores": measured.other_cores,
        "stages": [
            {"stage": cost.stage, "ms_per_example": cost.ms_per_example, "cpu_ms_per_example": cost.cpu_ms_per_example}
            for cost in measured.stages
        ],
    }


def _prediction(prediction: Prediction, measured: Measured) -> dict[str, Any]:
    memory = prediction.memory_bytes
    return {
        "step_ms": prediction.step_ms,
        "gain_percent": prediction.gain_percent(measured),
        "ceiling_ms": prediction.ceiling_ms,
        "terms": [{"name": term.name, "ms": term.ms} for term in prediction.terms],
        "memory_bytes": memory.to_json() if isinstance(memory, Unavailable) else memory,
        "threads": prediction.threads,
        "notes": list(prediction.notes),
    }
