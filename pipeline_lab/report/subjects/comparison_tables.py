"""The numbers of a comparison as text and as tables."""

from dataclasses import asdict
from typing import Any

import pyarrow as pa

from pipeline_lab.comparison.compared_stages import ComparedStages
from pipeline_lab.comparison.differences import Difference
from pipeline_lab.comparison.recorded_runs import Comparison
from pipeline_lab.comparison.step_time_ratio import LARGE, StepTimeRatio
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import format_percent, write_number

MEASURE_TABLE = pa.schema(
    [
        ("run", pa.string()),
        ("measure", pa.string()),
        ("unit", pa.string()),
        ("value", pa.float64()),  # null where it was not measured
        ("difference", pa.float64()),  # from the baseline's value; null if either was not measured
        ("reason", pa.string()),  # why it was not measured, else null
    ]
)
"""One row per run and measure."""

DIFFERENCE_TABLE = pa.schema([("path", pa.string()), ("run", pa.string()), ("value", pa.string())])
"""One row per differing path and run; the value is null where a run does not have it."""

STEP_TIME_TABLE = pa.schema(
    [
        ("run", pa.string()),
        ("ratio", pa.float64()),  # candidate over baseline; null where they cannot be compared
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("confidence", pa.float64()),
        ("per", pa.string()),
        ("outcome", pa.string()),
        ("reason", pa.string()),  # why they cannot be compared, else null
    ]
)
"""One row per candidate."""

STAGE_TABLE = pa.schema(
    [
        ("run", pa.string()),
        ("stage", pa.string()),
        ("ran", pa.string()),  # kinds of the iterators; null without such a stage
        ("work_ns", pa.float64()),  # thread time of one batch
        ("difference_ns", pa.float64()),  # from the baseline's
        ("parallelism", pa.float64()),
        ("buffered_elements", pa.float64()),
        ("buffer_limit", pa.float64()),
        ("source", pa.string()),  # where the times are from, or why there are none
    ]
)
"""One row per run and stage; null where it was not measured."""


def data_tables(comparison: Comparison) -> dict[str, pa.Table]:
    """Return a comparison's tables by name."""
    return {
        "measures": _measures(comparison),
        "step_time": _step_time(comparison),
        "stages": _stages(comparison),
        "differing_options": _differences(comparison, comparison.differences.options),
        "differing_environment": _differences(comparison, comparison.differences.environment),
    }


def signed_percent(percent: float) -> str:
    """Write a relative difference with its sign; what takes several times as long as a factor, as sentences do."""
    if percent >= 100 * (LARGE - 1):
        return f"{write_number(1 + percent / 100)}×"
    sign = "+" if percent > 0 else "−" if percent < 0 else "±"
    return f"{sign}{format_percent(abs(percent))}"


def _measures(comparison: Comparison) -> pa.Table:
    rows = []
    for each in comparison.measures:
        for number, (run, value) in enumerate(zip(comparison.runs, each.values, strict=True)):
            missing = isinstance(value, Unavailable)
            rows.append(
                {
                    "run": run.name,
                    "measure": each.key,
                    "unit": each.metric.unit.value,
                    "value": None if missing else value,
                    "difference": each.difference(number),
                    "reason": value.reason if isinstance(value, Unavailable) else None,
                }
            )
    return build_table(rows, MEASURE_TABLE)


def _step_time(comparison: Comparison) -> pa.Table:
    rows = [
        {"run": run.name, **_ratio_row(ratio)}
        for run, ratio in zip(comparison.candidates, comparison.step_time, strict=True)
    ]
    return build_table(rows, STEP_TIME_TABLE)


def _ratio_row(ratio: StepTimeRatio | Unavailable) -> dict[str, object]:
    if isinstance(ratio, Unavailable):
        return {"reason": ratio.reason}
    names = ("ratio", "low", "high", "confidence", "per")
    return {**{name: getattr(ratio, name) for name in names}, "outcome": ratio.outcome.value}


def _stages(comparison: Comparison) -> pa.Table:
    stages = comparison.stages
    rows = [] if isinstance(stages, Unavailable) else _stage_rows(stages, comparison)
    return build_table(rows, STAGE_TABLE)


def _stage_rows(stages: ComparedStages, comparison: Comparison) -> list[dict[str, Any]]:
    return [
        {
            "run": run.name,
            "stage": row.name,
            **(asdict(use) | {"ran": " + ".join(use.ran)} if use else {}),
            "work_ns": stages.work_ns(row, number),
            "difference_ns": stages.difference_ns(row, number),
            "source": source.reason if isinstance(source, Unavailable) else source,
        }
        for row in stages.rows
        for number, (run, use, source) in enumerate(zip(comparison.runs, row.uses, stages.sources, strict=True))
    ]


def _differences(comparison: Comparison, found: tuple[Difference, ...]) -> pa.Table:
    rows = [
        {"path": each.path, "run": run.name, "value": value}
        for each in found
        for run, value in zip(comparison.runs, each.values, strict=True)
    ]
    return build_table(rows, DIFFERENCE_TABLE)


def build_table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Build a table of the schema's columns, null where a row lacks one.

    What is no Unicode in a name becomes a question mark, as Arrow holds UTF-8 only.
    """
    return pa.Table.from_pylist([{name: _utf8(row.get(name)) for name in schema.names} for row in rows], schema)


def _utf8(value: Any) -> Any:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
