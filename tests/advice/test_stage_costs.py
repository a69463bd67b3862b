"""Iterators laid beside the stages that they were written as."""

from collections.abc import Sequence

import pytest

from pipeline_lab.advice.stage_costs import StageCost, attribute_costs
from pipeline_lab.analysis.input.live_model import StageWork
from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload
from tests.support.measured import options

MS = 1_000_000


def chain(*iterators: tuple[str, float, float]) -> list[StageWork]:
    """Build a chain of iterators below the root: name, elements for one batch, ms for one element."""
    works, path = [], "Root"
    for number, (name, visits, ms) in enumerate((("Root", 1.0, 0.0), *iterators)):
        path = path if not number else f"{path}::{name}"
        works.append(
            StageWork(
                path=path,
                parent=number - 1 if number else None,
                visits_per_batch=visits,
                self_ns=ms * MS,
                elements=round(100 * visits),
                element_bytes=100.0,
                parallelism=2.0 if name in ("ParallelMapV2", "MapAndBatch") else None,
                parallelism_tuned=False,
                cycle_length=None,
                buffer_limit=None,
                buffer_tuned=False,
                buffered_elements=None,
                buffered_bytes=None,
                peak_bytes=0,
                is_asynchronous=False,
            )
        )
    return works


def by_stage(costs: Sequence[StageCost]) -> dict[str, float]:
    return {cost.stage: round(cost.ns_per_example / MS, 6) for cost in costs}


def test_each_iterator_goes_to_its_stage_and_what_is_left_to_the_reader():
    found = attribute_costs(
        chain(
            ("Prefetch", 1, 0.1),
            ("BatchV2", 1, 1.0),
            ("ParallelMapV2", 10, 2.0),
            ("ForeverRepeat", 10, 0.0),
            ("FlatMap", 10, 0.25),
            ("TFRecord", 10, 0.75),
        ),
        options(),
    )
    assert by_stage(found) == {"read": 1.0, "repeat": 0.0, "map": 2.0, "batch": 0.1, "prefetch": 0.01}
    assert found[2].parallelism == 2.0


def test_a_prefetch_that_nobody_wrote_belongs_to_no_stage():
    found = attribute_costs(
        chain(
            ("Prefetch", 1, 5.0),
            ("BatchV2", 1, 1.0),
            ("Map", 10, 2.0),
            ("ForeverRepeat", 10, 0.0),
            ("TFRecord", 10, 1.0),
        ),
        options(prefetch=None),
    )
    assert by_stage(found) == {"read": 1.0, "repeat": 0.0, "map": 2.0, "batch": 0.1}


def test_a_fused_map_and_batch_is_the_maps():
    found = attribute_costs(
        chain(("Prefetch", 1, 0.0), ("MapAndBatch", 1, 20.0), ("ForeverRepeat", 10, 0.0), ("TFRecord", 10, 1.0)),
        options(),
    )
    assert by_stage(found) == {"read": 1.0, "repeat": 0.0, "map": 2.0, "batch": 0.0, "prefetch": 0.0}


def test_below_a_full_cache_the_cost_of_the_first_epoch_counts():
    cached = options({"stage": "map"}, {"stage": "cache"}, {"stage": "repeat"})
    found = attribute_costs(
        chain(
            ("Prefetch", 1, 0.0),
            ("BatchV2", 1, 0.0),
            ("ForeverRepeat", 10, 0.0),
            ("MemoryCache", 10, 0.001),
            ("MemoryCacheImpl", 10, 0.002),
            ("Map", 0, 2.0),
            ("TFRecord", 0, 1.0),
        ),
        cached,
    )
    assert by_stage(found) == {"read": 1.0, "map": 2.0, "cache": 0.003, "repeat": 0.0, "batch": 0.0, "prefetch": 0.0}


def test_views_are_a_map_and_what_takes_them_apart():
    stages = [
        {"stage": "read"},
        {"stage": "repeat"},
        {"stage": "parse"},
        {"stage": "views", "crops": 2, "mirror": False},
    ]
    stages += [{"stage": "batch", "size": 10}]
    what = RunOptions(
        workload=ImagesWorkload(data="random", image_size=32),
        pipeline=PipelineOptions.model_validate({"stages": stages, "tensorflow_rewrites": False}),
    )
    found = attribute_costs(
        chain(
            ("BatchV2", 1, 0.0),
            ("Unbatch", 10, 0.1),
            ("Map", 5, 4.0),
            ("Map", 5, 3.0),
            ("ForeverRepeat", 5, 0.0),
            ("TFRecord", 5, 1.0),
        ),
        what,
    )
    assert by_stage(found) == pytest.approx({"read": 1.0, "repeat": 0.0, "parse": 3.0, "views": 2.1, "batch": 0.0})


def test_a_map_of_the_readers_own_is_no_stage():
    what = options({"stage": "repeat"})
    assert isinstance(what.workload, SyntheticWorkload)
    found = attribute_costs(
        chain(
            ("Prefetch", 1, 0.0),
            ("BatchV2", 1, 0.0),
            ("ForeverRepeat", 10, 0.0),
            ("Map", 10, 0.5),
            ("TFRecord", 10, 1.0),
        ),
        what,
    )
    assert by_stage(found)["read"] == 1.5


@pytest.mark.parametrize(
    ("preset", "batching"),
    [("audio-padded", "PaddedBatchV2"), ("audio-bucketed", "GroupByWindow"), ("audio-ragged", "MapAndBatch")],
)
def test_padding_buckets_and_ragged_batches_are_told_from_parsing(preset: str, batching: str):
    iterators = (
        (batching, 1, 32.0),
        ("ParallelMapV2", 32, 3.0),
        ("ShuffleAndRepeat", 32, 0.0),
        ("Interleave", 32, 1.0),
    )
    costs = by_stage(attribute_costs(chain(("Prefetch", 1, 0.0), *iterators), find_preset(preset).options))
    made_by = (
        "bucket_by_sequence_length" if preset == "audio-bucketed" else "batch"
    )  # ragged: its map is the batch's own
    assert {stage: ms for stage, ms in costs.items() if ms} == {"read": 1.0, "parse": 3.0, made_by: 1.0}
