"""The simulated order of records is that of tf.data: exactly where nothing is random, in distribution elsewhere."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.predicted_order import predict_order
from pipeline_lab.stages.batches import BatchStage, RebatchStage, UnbatchStage
from pipeline_lab.stages.order import RepeatStage, ShuffleStage
from pipeline_lab.stages.parts import FilterStage, RandomShardStage, ShardStage, SkipStage, TakeStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stores import CacheStage
from pipeline_lab.statistics.mixing import Mixing, measure_mixing
from pipeline_lab.statistics.reading_order import (
    ReadingOrder,
)
from pipeline_lab.worker.workloads.data_files import FILE_SHIFT, RECORD_MASK
from pipeline_lab.workloads.synthetic import SyntheticWorkload

pytestmark = pytest.mark.tensorflow

Ask = Callable[..., Any]

CORES = len(os.sched_getaffinity(0))
SIZES = (7, 1, 12, 4, 9)
ROUGH = BatchStage(size=5, drop_remainder=False)
EXACT = {
    "sequential": (ReadStage(), ROUGH, RepeatStage(count=2)),
    "interleave": (ReadStage(mode="interleave", cycle_length=3, block_length=2), RepeatStage(count=2), ROUGH),
    "interleave, parallel": (ReadStage(mode="interleave", cycle_length=2, num_parallel_calls=1), ROUGH),
    "interleave, as many files as tf.data likes": (ReadStage(mode="interleave"), ROUGH),
    "interleave, autotuned": (ReadStage(mode="interleave", num_parallel_calls="autotune"), ROUGH),
    "parallel reads": (ReadStage(mode="parallel_reads", num_parallel_calls=4), CacheStage(), RepeatStage(), ROUGH),
    "parallel reads, autotuned": (ReadStage(mode="parallel_reads", num_parallel_calls="autotune"), ROUGH),
    "full batches": (ReadStage(), BatchStage(size=5), RepeatStage(count=2)),
    "one shard of the files": (ReadStage(mode="interleave", cycle_length=2, num_shards=2, shard_index=1), ROUGH),
    "parts": (ReadStage(), SkipStage(count=3), ShardStage(num_shards=2, index=1), TakeStage(count=11), ROUGH),
    "parts of epochs": (ReadStage(), TakeStage(count=11), RepeatStage(count=3), SkipStage(count=7), ROUGH),
    "taken apart": (ReadStage(), ROUGH, RepeatStage(count=2), UnbatchStage(), BatchStage(size=8)),
    "cut anew": (ReadStage(), ROUGH, RebatchStage(size=7, drop_remainder=False), SkipStage(count=1)),
    "one stretch": (ReadStage(), RandomShardStage(num_shards=1, shard_size=20), RepeatStage(count=2), ROUGH),
}
RANDOM = {
    "shuffle": (ReadStage(), ShuffleStage(buffer_size=100), BatchStage(size=20)),
    "shuffle over epochs": (ReadStage(), RepeatStage(), ShuffleStage(buffer_size=300), BatchStage(size=20)),
    "interleave and shuffle": (
        ReadStage(mode="interleave", cycle_length=3),
        ShuffleStage(buffer_size=150),
        RepeatStage(),
        BatchStage(size=20),
    ),
    "batches shuffled": (ReadStage(), BatchStage(size=20), ShuffleStage(buffer_size=10)),
    "by size": (ReadStage(mode="sample"), RepeatStage(), BatchStage(size=20)),
    "stretches": (
        ReadStage(),
        RandomShardStage(num_shards=12, shard_size=100),
        ShuffleStage(buffer_size=150),
        RepeatStage(),
        BatchStage(size=20),
    ),
    "all files alike": (ReadStage(mode="sample", weights="uniform"), BatchStage(size=20)),
}


def real_and_simulated(
    ask: Ask, stages: Any, sizes: tuple[int, ...], batches: int
) -> tuple[ReadingOrder, ReadingOrder]:
    pipeline = PipelineOptions(stages=stages)
    workload = SyntheticWorkload(examples_per_file=sizes, element_bytes=16, map_ms=0)
    ids = ask("ids_of", options=RunOptions(workload=workload, pipeline=pipeline).to_json(), batches=batches)
    flat = np.array([one for batch in ids for one in batch], np.int64)
    number = np.repeat(np.arange(len(ids)), [len(batch) for batch in ids])
    simulated = predict_order(pipeline, np.array(sizes), batches, cores=CORES)
    assert simulated is not None
    return ReadingOrder(number, flat >> FILE_SHIFT, flat & RECORD_MASK, simulated.records), simulated


@pytest.mark.parametrize("stages", EXACT.values(), ids=EXACT)
def test_without_chance_the_order_is_the_same(ask_tensorflow: Ask, stages: Any) -> None:
    real, simulated = real_and_simulated(ask_tensorflow, stages, SIZES, 20)
    for part in ("batch", "file", "record"):
        assert getattr(real, part).tolist() == getattr(simulated, part).tolist()


def test_a_filter_lets_through_as_much_as_predicted(ask_tensorflow: Ask) -> None:
    stages = (ReadStage(), FilterStage(keep_percent=30), RepeatStage(count=3), BatchStage(size=10))
    real, simulated = real_and_simulated(ask_tensorflow, stages, (500, 1500), 500)
    assert len(real.file) == pytest.approx(len(simulated.file), rel=0.1)
    assert len(np.unique(real.file * 2000 + real.record)) == pytest.approx(
        len(np.unique(simulated.file * 2000 + simulated.record)), rel=0.1
    )


@pytest.mark.parametrize("stages", RANDOM.values(), ids=RANDOM)
def test_with_chance_the_mixing_is_the_same(ask_tensorflow: Ask, stages: Any) -> None:
    sizes = (200, 400, 600)

    def mixing(order: ReadingOrder) -> Mixing:
        return measure_mixing(order.batch, order.file, order.record, np.array(sizes))

    real, simulated = real_and_simulated(ask_tensorflow, stages, sizes, 120)
    assert abs(len(real.file) - len(simulated.file)) == 0
    found, expected = mixing(real), mixing(simulated)
    assert found.batch_entropy == pytest.approx(expected.batch_entropy, abs=0.12)
    assert found.batch_total_variation == pytest.approx(expected.batch_total_variation, abs=0.06)
    assert found.displacement == pytest.approx(expected.displacement, abs=0.1)
    assert found.same_file_neighbours == pytest.approx(expected.same_file_neighbours, abs=0.1)
    assert len(np.unique(real.file * 1000 + real.record)) == pytest.approx(
        len(np.unique(simulated.file * 1000 + simulated.record)), rel=0.05
    )
