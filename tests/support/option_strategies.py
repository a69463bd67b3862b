"""Hypothesis strategies for run options: every one is valid, and together they reach every line of the renderer."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from pydantic import ValidationError

from pipeline_lab.options.run_options import RunOptions

PARALLELISM = st.none() | st.just("autotune") | st.integers(1, 64)
FLAGS = st.booleans()
MAYBE_FLAGS = st.none() | FLAGS


def _optional(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"stage": st.just(kind)}, optional=fields)


READS = st.one_of(
    st.fixed_dictionaries(
        {"stage": st.just("read"), "mode": st.sampled_from(["sequential", "flat_map", "map"])},
        optional={"shuffle_files": FLAGS, "num_shards": st.integers(1, 2)},
    ),
    st.fixed_dictionaries(
        {
            "stage": st.just("read"),
            "mode": st.just("parallel_reads"),
            "num_parallel_calls": st.just("autotune") | st.integers(1, 64),
            "shuffle_files": FLAGS,
        }
    ),
    st.fixed_dictionaries(
        {"stage": st.just("read"), "mode": st.just("sample")},
        optional={"weights": st.sampled_from(["size", "uniform"])},
    ),
    st.fixed_dictionaries(
        {"stage": st.just("read"), "mode": st.just("interleave")},
        optional={
            "shuffle_files": FLAGS,
            "cycle_length": st.none() | st.integers(1, 64),
            "block_length": st.integers(1, 64),
            "num_parallel_calls": PARALLELISM,
            "deterministic": MAYBE_FLAGS,
        },
    ),
)
AUGMENTS = _optional(
    "augment",
    pad=st.integers(0, 8),
    crop=st.none() | st.integers(4, 32),
    flip=FLAGS,
    rotate_degrees=st.floats(0, 180),
    cutout=st.integers(0, 4),
    normalise=FLAGS,
    num_parallel_calls=PARALLELISM,
    deterministic=MAYBE_FLAGS,
)
VIEWS = _optional(
    "views",
    crops=st.integers(1, 5),
    size=st.integers(4, 32),
    mirror=FLAGS,
    num_parallel_calls=PARALLELISM,
    deterministic=MAYBE_FLAGS,
)
PARSES = _optional("parse", num_parallel_calls=PARALLELISM, deterministic=MAYBE_FLAGS)
MAPS = _optional("map", num_parallel_calls=PARALLELISM, deterministic=MAYBE_FLAGS)
BATCHES = _optional(
    "batch",
    size=st.integers(1, 64),
    drop_remainder=FLAGS,
    num_parallel_calls=PARALLELISM,
    deterministic=MAYBE_FLAGS,
)
UNEQUAL_BATCHES = st.fixed_dictionaries(
    {"stage": st.just("batch"), "mode": st.sampled_from(["padded_batch", "ragged_batch"])},
    optional={"size": st.integers(1, 64), "drop_remainder": FLAGS},
)
ANYWHERE = st.lists(
    st.one_of(
        _optional("cache", where=st.sampled_from(["memory", "file"])),
        _optional("shuffle", buffer_size=st.integers(1, 5000), reshuffle_each_iteration=FLAGS),
        _optional("repeat", count=st.none() | st.integers(1, 3)),
        _optional("prefetch", buffer_size=st.just("autotune") | st.integers(1, 16)),
        _optional("snapshot", compression=st.sampled_from(["auto", "none", "gzip", "snappy"])),
        _optional("save", compression=st.sampled_from(["none", "gzip"])),
        _optional("take", count=st.integers(1, 5000)),
        _optional("skip", count=st.integers(1, 50)),
        _optional("shard", num_shards=st.integers(1, 4)),
        _optional("random_shard", num_shards=st.integers(1, 8), shard_size=st.integers(1, 100)),
        _optional("filter", keep_percent=st.floats(1, 100)),
        _optional(
            "service",
            address=st.none() | st.sampled_from(["localhost:5000", "grpc://10.0.0.1:80"]),
            workers=st.integers(1, 4),
            sharding=st.sampled_from(["dynamic", "file", "off"]),
            compression=FLAGS,
        ),
        _optional("rebatch", size=st.integers(1, 64), drop_remainder=FLAGS),
    ),
    max_size=5,
)
SIZES = st.lists(st.integers(100, 3000), min_size=1, max_size=5)


@st.composite
def _pipelines(draw: Callable[..., Any], *needed: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    stages = draw(st.permutations([draw(stage) for stage in needed] + draw(ANYWHERE)))
    names = [stage["stage"] for stage in stages]
    if "augment" in names and names.index("augment") < names.index("parse"):
        first, second = names.index("augment"), names.index("parse")
        stages[first], stages[second] = stages[second], stages[first]
    if draw(FLAGS):
        stages.append({"stage": "prefetch_to_device"})
    return {
        "stages": [draw(READS), *stages],
        "private_threadpool_size": draw(st.none() | st.integers(1, 16)),
        "tensorflow_rewrites": draw(FLAGS),
        "autotune_algorithm": draw(st.none() | st.sampled_from(["hill_climb", "stage_based"])),
        "autotune_ram_budget_mb": draw(st.none() | st.integers(1, 1000)),
        "deterministic": draw(MAYBE_FLAGS),
        "slack": draw(FLAGS),
        "warm_start": draw(FLAGS),
    }


FOLDERS = st.text("ab/ \"'", min_size=1)
IMAGE_WORKLOADS = st.one_of(
    st.fixed_dictionaries({"kind": st.just("images"), "data": st.just("folder"), "folder": FOLDERS}),
    st.fixed_dictionaries(
        {
            "kind": st.just("images"),
            "data": st.sampled_from(["digits", "cifar10", "random"]),
            "examples_per_file": SIZES,
        }
    ),
    st.fixed_dictionaries(
        {
            "kind": st.just("images"),
            "data": st.just("files"),
            "pattern": st.text(min_size=1, max_size=40),
            "image_feature": st.text(min_size=1, max_size=20),
            "label_feature": st.text(min_size=1, max_size=20),
        }
    ),
)
SYNTHETIC_WORKLOADS = st.fixed_dictionaries(
    {"kind": st.just("synthetic"), "examples_per_file": SIZES},
    optional={
        "read_ms": st.floats(0, 100),
        "map_ms": st.floats(0, 100),
        "jitter_percent": st.just(0) | st.floats(0, 100),
        "tail_every": st.integers(0, 32),
        "work": st.sampled_from(["sleep", "spin"]),
    },
)
VARIED_WORKLOADS = SYNTHETIC_WORKLOADS.map(lambda workload: {**workload, "varied_lengths": True})
AUDIO_WORKLOADS = st.one_of(
    st.fixed_dictionaries(
        {"kind": st.just("audio"), "clips_per_class": SIZES},
        optional={"frame_samples": st.integers(8, 512), "sample_rate_hz": st.integers(100, 48_000)},
    ),
    st.fixed_dictionaries({"kind": st.just("audio"), "data": st.just("folder"), "folder": FOLDERS}),
)
BUCKETS = st.lists(st.integers(1, 180), min_size=1, max_size=5, unique=True).flatmap(
    lambda boundaries: st.fixed_dictionaries(
        {
            "stage": st.just("bucket_by_sequence_length"),
            "boundaries_s": st.just(sorted(boundaries)),
            "batch_sizes": st.lists(st.integers(1, 64), min_size=len(boundaries) + 1, max_size=len(boundaries) + 1),
            "drop_remainder": FLAGS,
        }
    )
)
RECORD_WORKLOADS = st.fixed_dictionaries(
    {
        "kind": st.just("records"),
        "pattern": st.text(min_size=1, max_size=40),
        "features": st.sampled_from(
            ["label:int64, vector:float32[8]", "label:int64, tokens:int64[*]", "label:int64, a \"':bytes"]
        ),
    },
    optional={"label": st.just("label")},
)
SPARSE_WORKLOADS = st.fixed_dictionaries(
    {"kind": st.just("sparse"), "examples_per_file": SIZES, "features": st.integers(1, 40)}
)
GENERATOR_WORKLOADS = st.fixed_dictionaries(
    {"kind": st.just("generator"), "examples_per_generator": SIZES},
    optional={
        "example_ms": st.floats(0, 10),
        "examples_at_once": st.integers(1, 64),
        "producer": st.sampled_from(["in_line", "threads", "processes"]),
        "ids": st.sampled_from(["numbers", "strings"]),
    },
)


FEATURES_WORKLOADS = st.fixed_dictionaries(
    {"kind": st.just("features"), "examples_per_file": SIZES},
    optional={"layout": st.sampled_from(["replicated", "lookup", "constant", "variable", "sharded"])},
)
LOOKUPS = _optional("lookup", num_parallel_calls=PARALLELISM, deterministic=MAYBE_FLAGS)


def _valid(document: dict[str, Any]) -> RunOptions | None:
    try:
        return RunOptions.model_validate(document)
    except ValidationError:
        return None


def _documents(workloads: st.SearchStrategy[Any], pipelines: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"workload": workloads, "pipeline": pipelines})


RUN_OPTIONS: st.SearchStrategy[RunOptions] = (
    st.one_of(
        _documents(IMAGE_WORKLOADS, _pipelines(PARSES, BATCHES)),
        _documents(IMAGE_WORKLOADS, _pipelines(PARSES, AUGMENTS, BATCHES)),
        _documents(AUDIO_WORKLOADS, _pipelines(PARSES, UNEQUAL_BATCHES)),
        _documents(AUDIO_WORKLOADS, _pipelines(PARSES, BUCKETS)),
        _documents(IMAGE_WORKLOADS, _pipelines(PARSES, VIEWS, BATCHES)),
        _documents(RECORD_WORKLOADS, _pipelines(PARSES, BATCHES)),
        _documents(SPARSE_WORKLOADS, _pipelines(PARSES, BATCHES)),
        _documents(FEATURES_WORKLOADS, _pipelines(PARSES, BATCHES)),
        _documents(FEATURES_WORKLOADS, _pipelines(PARSES, LOOKUPS, BATCHES)),
        _documents(GENERATOR_WORKLOADS, _pipelines(BATCHES)),
        _documents(SYNTHETIC_WORKLOADS, _pipelines(BATCHES)),
        _documents(SYNTHETIC_WORKLOADS, _pipelines(MAPS, BATCHES)),
        _documents(VARIED_WORKLOADS, _pipelines(UNEQUAL_BATCHES)),
    )
    .map(_valid)
    .filter(lambda options: options is not None)
)
