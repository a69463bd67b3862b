"""The grid that is searched: a job that reads, maps and trains, with 180 settings of its knobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.delivery import PrefetchStage
from pipeline_lab.stages.functions import MapStage
from pipeline_lab.stages.order import RepeatStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.tuning.space import Space, make_space
from pipeline_lab.workloads.synthetic import SyntheticWorkload

START = RunOptions(
    name="naive",
    workload=SyntheticWorkload(examples_per_file=(2000,) * 8, read_ms=0.3, map_ms=1.5, compute_ms=5.0),
    pipeline=PipelineOptions(
        stages=(ReadStage(), RepeatStage(), MapStage(), BatchStage(size=16)), tensorflow_rewrites=False
    ),
    profiling=ProfilingOptions(every_steps=50),
)
"""About 5 ms of reading, 24 ms of mapping and 5 ms of training, one after the other."""

AUTOTUNE = START.model_copy(
    update={
        "name": "AUTOTUNE",
        "pipeline": PipelineOptions(
            stages=(
                ReadStage(mode="interleave", num_parallel_calls="autotune"),
                RepeatStage(),
                MapStage(num_parallel_calls="autotune"),
                BatchStage(size=16),
                PrefetchStage(),
            )
        ),
    }
)
"""What one writes who leaves everything to tf.data."""


@dataclass(frozen=True)
class Size:
    """How large the whole benchmark is.

    Attributes:
        knobs: Values of each knob.
        pairs: Rounds of the races that measure every configuration.
        last_pairs: Rounds of the races between the picks.
        seeds: Searches of each kind.
        budget_s: Of one of our searches.
        configurations: What one search may measure.
    """

    knobs: Mapping[str, Sequence[str]]
    pairs: int
    last_pairs: int
    seeds: int
    budget_s: float
    configurations: int

    @property
    def space(self) -> Space:
        return make_space(START, only=self.knobs)


FULL = Size(
    knobs={
        "files at once": ("1", "2", "4", "8"),
        "map calls": ("1", "2", "4", "8", "16"),
        "pool threads": ("default", "4", "16"),
        "prefetch": ("none", "2", "8"),
    },
    pairs=10,
    last_pairs=30,
    seeds=5,
    budget_s=900.0,
    configurations=8,
)
TINY = Size(
    knobs={"map calls": ("1", "4"), "pool threads": ("default", "4"), "prefetch": ("none", "2")},
    pairs=6,
    last_pairs=8,
    seeds=1,
    budget_s=150.0,
    configurations=3,
)
