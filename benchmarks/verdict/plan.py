"""What each planted job is and what the right answer to it is, fixed before any rule is looked at.

Every trouble is planted twice, with other numbers: thresholds may be set on the jobs of the set ``tune`` and are scored
on those of the set ``score``. Numbers are chosen for two cores.

What was changed after first recordings, so that a reader can weigh the score: decoding that slowed the training step
instead of keeping it waiting gave way to reading that needs every core; the contention jobs got larger pipelines, twice;
large host copies got a cache; a map that fills every core was added. One *answer* was changed: sparse features on a
processor are many small operations called one by one, so their class is dispatch, where an operation that fills the gaps
was expected at first; the operation must still be named. Where a map of one or two calls sleeps inside of Python, `python-waits`, which came
later, is as right as `under-parallel`: both ask for more calls at once.
"""

from dataclasses import dataclass
from typing import Any, Literal

from pipeline_lab.options.run_options import RunOptions, read_options

Set = Literal["tune", "score"]
Stage = dict[str, Any]

PREFETCH: Stage = {"stage": "prefetch", "buffer_size": 2}
REPEAT: Stage = {"stage": "repeat"}
MAPS = ("Map", "ParallelMapV2", "MapAndBatch")
BATCHES = ("BatchV2", "ParallelBatch", *MAPS)
READERS = ("TFRecord", "FlatMap", "Interleave", "ParallelInterleaveV4", "Map", "Sleep")


@dataclass(frozen=True)
class Planted:
    """One job with its right answer.

    Attributes:
        name: What is planted.
        set: Whether thresholds may be set on it or are scored on it.
        options: The job.
        verdict_class: The class that the verdict must have.
        causes: Any of these is right; empty where the class has no cause.
        stages: Any of these iterators is right as the stage to blame; empty where none is.
        finding: A finding that must be there, or None.
        operation: A host operation that the gaps must name, or None.
    """

    name: str
    set: Set
    options: RunOptions
    verdict_class: str
    causes: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    finding: str | None = None
    operation: str | None = None


def planned(which: Set | None = None) -> list[Planted]:
    """Return all jobs, those that need several devices first: a process can divide its processor only once."""
    jobs = [*_jobs(0, "tune"), *_jobs(1, "score")]
    return sorted((job for job in jobs if which in (None, job.set)), key=lambda job: -job.options.training.replicas)


def _jobs(v: int, which: Set) -> list[Planted]:
    """Return one of the two sets; ``(first, second)[v]`` is a number of the first or the second."""

    def job(
        name: str, workload: Stage, written: list[Stage], verdict_class: str, *, steps: int = 120, **rest: Any
    ) -> Planted:
        pipeline = {
            "tensorflow_rewrites": rest.pop("rewrites", False),
            "private_threadpool_size": rest.pop("pool", None),
        }
        training = {"steps": steps, "warmup_steps": 5, **rest.pop("training", {})}
        document = {
            "name": f"{name}-{which}",
            "workload": workload,
            "pipeline": {"stages": written, **pipeline},
            "training": training,
            "profiling": {"steps_per_window": 10, "every_steps": 40},
        }
        return Planted(name, which, read_options(document), verdict_class, **rest)

    read: Stage = {"stage": "read"}
    batch: Stage = {"stage": "batch", "size": (32, 24)[v]}

    def chain(*middle: Stage, prefetch: bool = True, reading: Stage = read, batching: Stage = batch) -> list[Stage]:
        return [reading, REPEAT, *middle, batching, *([PREFETCH] if prefetch else [])]

    def mapped(calls: int | str | None = None, **more: Any) -> Stage:
        return {"stage": "map", "num_parallel_calls": calls, **more}

    def timed(**times: Any) -> Stage:
        return {"kind": "synthetic", "map_ms": 0.0, "compute_ms": (5.0, 7.0)[v], **times}

    images: Stage = {"kind": "images", "data": "random", "examples_per_file": "2x64"}
    parse: Stage = {"stage": "parse", "num_parallel_calls": 4}
    crop: Stage = {"stage": "augment", "pad": 0, "crop": 32, "flip": False, "rotate_degrees": 0, "cutout": 0}
    few: Stage = {"stage": "batch", "size": (16, 12)[v]}
    return [
        job(
            "slow source, one file after the other",
            timed(read_ms=(1.0, 1.4)[v]),
            chain(),
            "input-bound",
            causes=("source",),
            stages=READERS,
        ),
        job(
            "slow source, interleaved",
            timed(read_ms=(1.5, 1.1)[v]),
            chain(reading={"stage": "read", "mode": "interleave", "cycle_length": 2}),
            "input-bound",
            causes=("source",),
            stages=READERS,
        ),
        job(
            "slow Python generator",
            {"kind": "generator", "example_ms": (0.4, 0.6)[v], "compute_ms": (4.0, 6.0)[v]},
            chain(),
            "input-bound",
            causes=("python-bound",),
            stages=("Generator", "FlatMap"),
        ),
        job(
            "several Python generators",
            {
                "kind": "generator",
                "examples_per_generator": "4x8000",
                "example_ms": (0.4, 0.3)[v],
                "compute_ms": (4.0, 5.0)[v],
            },
            chain(reading={"stage": "read", "mode": "interleave", "cycle_length": 4, "num_parallel_calls": 4}),
            "input-bound",
            causes=("python-bound",),
            stages=("Generator", "FlatMap", "ParallelInterleaveV4"),
        ),
        job(
            "serial map",
            timed(map_ms=(1.0, 1.3)[v]),
            chain(mapped()),
            "input-bound",
            causes=("under-parallel", "python-waits"),
            stages=MAPS,
        ),
        job(
            "map of two calls at once",
            timed(map_ms=(2.0, 3.0)[v]),
            chain(mapped(2)),
            "input-bound",
            causes=("under-parallel", "python-waits"),
            stages=MAPS,
            pool=16,
        ),
        job(
            "thread pool of two",
            timed(map_ms=(2.0, 2.6)[v]),
            chain(mapped(8)),
            "input-bound",
            causes=("pool-bound",),
            stages=MAPS,
            pool=2,
        ),
        job(
            "thread pool of three, many calls",
            timed(map_ms=(3.0, 4.0)[v]),
            chain(mapped(16)),
            "input-bound",
            causes=("pool-bound",),
            stages=MAPS,
            pool=3,
        ),
        job(
            "one slow record in n, in order",
            timed(map_ms=(1.0, 0.8)[v], tail_every=16, tail_ms=(40.0, 30.0)[v]),
            chain(mapped(8, deterministic=True)),
            "input-bound",
            causes=("ordering",),
            stages=MAPS,
            pool=16,
        ),
        job(
            "one very slow record, in order",
            timed(map_ms=(0.8, 1.0)[v], tail_every=(64, 48)[v], tail_ms=(100.0, 80.0)[v]),
            chain(mapped(6, deterministic=True)),
            "input-bound",
            causes=("ordering",),
            stages=MAPS,
            pool=12,
        ),
        job(
            "no overlap",
            timed(map_ms=(0.5, 0.8)[v], compute_ms=(16.0, 20.0)[v]),
            chain(mapped(), prefetch=False),
            "input-bound",
            causes=("no-overlap",),
            stages=(*MAPS, "BatchV2"),
        ),
        job(
            "no overlap with a slow source",
            timed(read_ms=(0.6, 0.9)[v], compute_ms=(20.0, 18.0)[v]),
            chain(prefetch=False),
            "input-bound",
            causes=("no-overlap",),
            stages=(*READERS, "BatchV2"),
        ),
        job(
            "reading needs every core",
            timed(read_ms=(3.0, 2.5)[v], compute_ms=1.0, work="spin"),
            chain(reading={"stage": "read", "mode": "interleave", "cycle_length": 4, "num_parallel_calls": 4}),
            "input-bound",
            causes=("cpu-bound",),
            stages=READERS,
            pool=4,
            steps=80,
        ),
        job(
            "every core busy with the map",
            timed(map_ms=(3.0, 2.5)[v], compute_ms=1.0, work="spin"),
            chain(mapped(4)),
            "input-bound",
            causes=("cpu-bound",),
            stages=MAPS,
            pool=4,
            steps=80,
        ),
        job(
            "large host copies",
            timed(element_bytes=(3_000_000, 4_000_000)[v], examples_per_file="1x48", compute_ms=2.0),
            [read, {"stage": "cache"}, REPEAT, few, PREFETCH],
            "input-bound",
            causes=("under-parallel", "cpu-bound"),
            stages=BATCHES,
            steps=60,
        ),
        job("long computation", timed(map_ms=0.1, compute_ms=(30.0, 24.0)[v]), chain(mapped()), "device-bound"),
        job(
            "long computation on a core",
            timed(map_ms=0.05, compute_ms=(25.0, 32.0)[v], work="spin"),
            chain(mapped()),
            "device-bound",
        ),
        job(
            "many tiny operations",
            timed(tiny_ops=(400, 600)[v], compute_ms=1.0),
            chain(),
            "dispatch-bound",
            steps=80,
        ),
        job(
            "changing shapes",
            timed(varied_lengths=True, element_bytes=(4000, 6000)[v], compute_ms=2.0),
            chain(batching={"stage": "batch", "size": 2, "mode": "padded_batch"}),
            "compile-bound",
            finding="retracing",
            steps=80,
        ),
        job(
            "Python between the steps",
            timed(python_ms=(20.0, 14.0)[v], compute_ms=8.0),
            chain(),
            "idle-other",
            causes=("python",),
        ),
        job(
            "checkpoints",
            timed(weights_mb=(60.0, 90.0)[v], compute_ms=6.0),
            chain(),
            "idle-other",
            causes=("checkpoint",),
            training={"checkpoint_every": 1},
            steps=60,
        ),
        job(
            "sparse features on four replicas",
            {"kind": "sparse", "features": (17, 24)[v], "examples_per_file": "2x1000"},
            [
                read,
                REPEAT,
                {"stage": "batch", "size": (64, 48)[v]},
                {"stage": "parse", "num_parallel_calls": 2},
                PREFETCH,
            ],
            "dispatch-bound",
            operation="DeserializeSparse",
            training={"replicas": 4},
            steps=60,
        ),
        job(
            "decoding beside a real network",
            {**images, "image_size": (224, 208)[v]},
            chain({**parse, "num_parallel_calls": 2}, crop, batching=few),
            "host-contention",
            pool=2,
            steps=80,
        ),
        job(
            "files of unequal size",
            timed(examples_per_file=("500,1000,1500", "400,1600")[v], compute_ms=(12.0, 10.0)[v]),
            chain(reading={"stage": "read", "mode": "interleave", "cycle_length": 3}),
            "device-bound",
            finding="sampling-skew",
            steps=(90, 80)[v],
        ),
        job(
            "shuffle buffer of a few",
            timed(examples_per_file=("6x1500", "5x2000")[v], compute_ms=(12.0, 10.0)[v]),
            [read, {"stage": "shuffle", "buffer_size": (16, 24)[v]}, REPEAT, batch, PREFETCH],
            "device-bound",
            finding="weak-shuffle",
        ),
    ]
