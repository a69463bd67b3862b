"""A pipeline whose step time is known for every setting of its knobs, and what a race of such settings shows."""

import numpy as np

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.delivery import PrefetchStage
from pipeline_lab.stages.functions import MapStage
from pipeline_lab.stages.order import RepeatStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.workloads.synthetic import SyntheticWorkload
from tests.support.races import PlantedArm

CORES = 2
STEP_MS, MAP_MS = 10.0, 2.0
BATCH = 16

NAIVE = RunOptions(
    name="naive",
    workload=SyntheticWorkload(examples_per_file=(1000,) * 4, map_ms=MAP_MS, compute_ms=STEP_MS),
    pipeline=PipelineOptions(
        stages=(ReadStage(), RepeatStage(), MapStage(), BatchStage(size=BATCH)), tensorflow_rewrites=False
    ),
)
"""32 ms of mapping and 10 ms of training in turns: 42 ms."""
SMALL = {"map calls": ("1", "2", "4", "8"), "pool threads": ("default", "4", "8"), "prefetch": ("none", "2", "8")}
"""36 configurations; with 4 calls on 4 threads and a prefetch mapping takes 8 ms, so the step 10 ms."""


def true_ms(options: RunOptions) -> float:
    """Return the step time of a world that the model describes: max(step, map) with a prefetch, else their sum."""
    pipeline = options.pipeline
    stage = pipeline.find("map")
    assert isinstance(stage, MapStage)
    calls = stage.num_parallel_calls if isinstance(stage.num_parallel_calls, int) else 1
    input_ms = BATCH * MAP_MS / min(calls, pipeline.private_threadpool_size or CORES)
    is_overlapped = isinstance(pipeline.stages[-1], PrefetchStage)
    return max(STEP_MS, input_ms) if is_overlapped else STEP_MS + input_ms


def planted(step_ms: float, name: str, pairs: int, noise: float = 0.01) -> PlantedArm:
    """Return what an arm of a true step time shows, the same whenever it is asked."""
    wobble = np.exp(np.random.default_rng(sum(map(ord, name)) + pairs).normal(0, noise, pairs))
    return PlantedArm([round(float(each), 6) for each in step_ms * wobble])
