"""Hand-built recorded runs: those of :mod:`tests.support.results` with options, environment and source around them."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.comparison.recorded_runs import RecordedRun
from pipeline_lab.options.presets import find_preset
from pipeline_lab.pipeline.source import render_source
from tests.support import results

ENVIRONMENT = {"host": "trainer", "cpu": "Example CPU", "cores": 2.0, "device": "/device:CPU:0", "tensorflow": "2.21.0"}


def job_steps(factor: float = 1.0, steps: int = 200, noise: float = 0.0, seed: int = 0) -> JobSteps:
    """Build steps that take ``factor`` times 50 ms, with independent relative noise."""
    job = results.job_steps(steps)
    scatter = np.round(np.exp(noise * np.random.default_rng(seed).standard_normal(steps)), 9)
    table = job.table
    for name in ("step_ns", "wait_ns"):
        index = table.schema.get_field_index(name)
        values = (table.column(name).to_numpy() * factor * scatter).astype(np.int64)
        table = table.set_column(index, table.schema.field(name), pa.array(values))
    measured = table.column("step_ns").to_numpy()[results.WARMUP :]
    return replace(
        job,
        table=table,
        median_ns=float(np.median(measured)),
        p95_ns=float(np.percentile(measured, 95)),
        total_ns=int(measured.sum()),
        examples_per_second=128e9 / float(measured.mean()),
    )


def recorded(preset: str = "baseline", factor: float = 1.0, **changes: object) -> RecordedRun:
    """Build a run of a preset whose steps take ``factor`` times 50 ms; give fields by name to replace them."""
    options = find_preset(preset).options
    fields: dict[str, object] = {
        "name": preset,
        "diagnosis": results.diagnosis(job_steps=job_steps(factor)),
        "id": f"20260101-120000-{preset}-ab12",
        "state": "done",
        "created_s": 1_767_268_800.0,
        "options": options.model_dump(mode="json"),
        "environment": ENVIRONMENT,
        "source": render_source(options),
    }
    return RecordedRun(**{**fields, **changes})
