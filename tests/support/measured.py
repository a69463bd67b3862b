"""A measured run whose predictions add up in the head: ten examples in a batch, 2 ms of map for each, a step of 5 ms."""

from dataclasses import replace
from typing import Any

from pipeline_lab.advice.measured_run import Measured
from pipeline_lab.advice.stage_costs import StageCost
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.units import NS_PER_MS
from pipeline_lab.workloads.synthetic import SyntheticWorkload

MS = NS_PER_MS
BATCH, STEP_MS, MAP_MS, EXAMPLE_BYTES = 10, 5.0, 2.0, 1000


def options(*middle: dict[str, Any], prefetch: int | None = 2, batch: int = BATCH, **pipeline: Any) -> RunOptions:
    """Return read, repeat, the stages in between (a serial map if there are none), batch and prefetch."""
    stages = [
        {"stage": "read"},
        *(middle or ({"stage": "repeat"}, {"stage": "map"})),
        {"stage": "batch", "size": batch},
        *([{"stage": "prefetch", "buffer_size": prefetch}] if prefetch else []),
    ]
    if not any(stage["stage"] == "repeat" for stage in stages):
        stages.insert(1, {"stage": "repeat"})
    return RunOptions(
        workload=SyntheticWorkload(map_ms=MAP_MS, compute_ms=STEP_MS, examples_per_file=(1000,)),
        pipeline=PipelineOptions.model_validate({"stages": stages, "tensorflow_rewrites": False, **pipeline}),
    )


def mapped(calls: int | str | None = None, **more: Any) -> dict[str, Any]:
    return {"stage": "map", "num_parallel_calls": calls, **more}


def measured(**more: Any) -> Measured:
    """Return a run on four cores with eight threads: a map of 2 ms that sleeps, all other stages free of cost.

    Args:
        more: Other values; times may be given in ms, as ``step_ms=20.0``.
    """
    own = options()
    stages = [
        StageCost(stage.stage, 0.0, 0.0, EXAMPLE_BYTES, None, size or 1)
        for stage, size in zip(own.pipeline.stages, own.pipeline.batch_sizes, strict=True)
    ]
    stages[2] = replace(stages[2], ns_per_example=MAP_MS * MS)
    values: dict[str, Any] = {
        "options": own,
        "step_ms": BATCH * MAP_MS,
        "device_only_ms": STEP_MS,
        "stages": tuple(stages),
        "cores": 4.0,
        "pool_threads": 8,
        "step_cpu_ms": 4.0,
    }
    return Measured(**dict(_in_ns(name, value) for name, value in (values | more).items()))


def _in_ns(name: str, value: Any) -> tuple[str, Any]:
    return (name.removesuffix("_ms") + "_ns", value and value * MS) if name.endswith("_ms") else (name, value)


def with_workload(run: RunOptions, **values: Any) -> RunOptions:
    document = run.model_dump()
    document["workload"].update(values)
    return read_options(document)
