"""Real races whose truth is known; the store keeps them, so that a long series resumes.

Both arms of ``same`` are alike: three races of the synthetic workload, one of the images workload with parallelism
that tf.data chooses by itself, and so on. In ``slower-5`` and its like the candidate's step computes that much longer,
and its pipeline is fast enough not to matter (a millisecond per step that is no computing pulls the true ratio towards
1). In ``refill`` both wait for the same slow pipeline, but one has a buffer of 64 batches where the other has two: what
it gathers while it rests must not count.
"""

from dataclasses import dataclass
from pathlib import Path

from benchmarks.race.forked import run_forked
from benchmarks.race.results import append_end, print_ends, read_end, read_ends
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.store import RunStore
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.delivery import PrefetchStage
from pipeline_lab.stages.functions import MapStage, ParseStage
from pipeline_lab.stages.order import RepeatStage, ShuffleStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload

BATCH = 16
COMPUTE_MS = 15.0
SAME_COMPUTE_MS = 1.0
"""Whether alike arms are called different does not depend on how long they take."""


@dataclass(frozen=True)
class Pairing:
    """Two arms; ``block_steps`` are enough for blocks of some tens of milliseconds."""

    name: str
    baseline: RunOptions
    candidate: RunOptions
    block_steps: int = 10


@dataclass(frozen=True)
class Series:
    """Races of one kind, the pairings in turn; ``ratio`` is the true one."""

    name: str
    ratio: float
    pairings: tuple[Pairing, ...]


def _synthetic(name: str, *, compute_ms: float = COMPUTE_MS, map_ms: float = 0.05, prefetch: int = 2) -> RunOptions:
    stages = (ReadStage(), RepeatStage(), MapStage(), BatchStage(size=BATCH), PrefetchStage(buffer_size=prefetch))
    return RunOptions(
        name=name,
        workload=SyntheticWorkload(map_ms=map_ms, compute_ms=compute_ms, work="spin"),
        pipeline=PipelineOptions(stages=stages, tensorflow_rewrites=False),
    )


def _images(name: str) -> RunOptions:
    stages = (
        ReadStage(),
        ShuffleStage(buffer_size=128),
        RepeatStage(),
        BatchStage(size=8),
        ParseStage(num_parallel_calls="autotune"),
        PrefetchStage(),
    )
    workload = ImagesWorkload(data="digits", image_size=8, examples_per_file=(256,) * 4)
    return RunOptions(name=name, workload=workload, pipeline=PipelineOptions(stages=stages))


_ALIKE = Pairing("synthetic", *(_synthetic(name, compute_ms=SAME_COMPUTE_MS) for name in ("one", "other")))

SERIES = (
    Series("same", 1.0, (_ALIKE, _ALIKE, _ALIKE, Pairing("images", _images("one"), _images("other"), block_steps=5))),
    *(
        Series(
            f"slower-{percent}",
            1 + percent / 100,
            (
                Pairing(
                    "synthetic", _synthetic("one"), _synthetic("other", compute_ms=COMPUTE_MS * (1 + percent / 100))
                ),
            ),
        )
        for percent in (5, 10, 20)
    ),
    Series(
        "refill",
        1.0,
        (
            Pairing(
                "synthetic",
                _synthetic("two", map_ms=0.6, compute_ms=2.0),
                _synthetic("sixty-four", map_ms=0.6, compute_ms=2.0, prefetch=64),
            ),
        ),
    ),
)


def run_series(series: Series, races: int, pairs: int, root: Path) -> None:
    """Race until the wanted number of races of this kind have ended."""
    store = RunStore(root)
    for number in range(len(read_ends(root, series.name)), races):
        pairing = series.pairings[number % len(series.pairings)]
        options = RaceOptions(
            name=series.name,
            arms=(pairing.baseline, pairing.candidate),
            pairs=pairs,
            block_steps=pairing.block_steps,
            seed=number,
            max_seconds=120,
        )
        end = read_end(series.name, number, pairing.name, run_forked(store, options))
        append_end(root, end)
        print(f"{series.name} {number + 1}/{races}: {end.outcome} after {end.pairs} pairs, {end.ratio}", flush=True)


def print_series(series: Series, root: Path) -> None:
    """Print how often the races of a kind were right."""
    print_ends(series.name, series.ratio, read_ends(root, series.name))
