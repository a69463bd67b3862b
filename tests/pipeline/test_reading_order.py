import numpy as np
import pytest

from pipeline_lab.options.presets import find_preset
from pipeline_lab.pipeline.predicted_order import MAX_RECORDS, order_steps, predict_order
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.functions import ParseStage
from pipeline_lab.stages.order import RepeatStage, ShuffleStage
from pipeline_lab.stages.parts import RandomShardStage, ShardStage, TakeStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stage import Stage
from pipeline_lab.stages.stores import CacheStage
from pipeline_lab.statistics.reading_steps import (
    Batch,
    Cache,
    ReadFiles,
    Repeat,
    SampleFiles,
    Shuffle,
)


def test_stages_that_move_no_record_have_no_step():
    pipeline = PipelineOptions(
        stages=(
            ReadStage(shuffle_files=True),
            CacheStage(),
            ParseStage(),
            ShuffleStage(buffer_size=7, reshuffle_each_iteration=False),
            RepeatStage(count=2),
            BatchStage(size=3, drop_remainder=False),
        )
    )
    assert order_steps(pipeline, 4, 2) == (
        ReadFiles(shuffle_files=True),
        Cache(),
        Shuffle(7, reshuffle_each_iteration=False),
        Repeat(2),
        Batch(3, drop_remainder=False),
    )


@pytest.mark.parametrize(
    ("read", "step"),
    [
        (ReadStage(mode="interleave", cycle_length=5, block_length=2), ReadFiles(5, 2)),
        (ReadStage(mode="interleave"), ReadFiles(8)),
        (ReadStage(mode="interleave", num_parallel_calls="autotune"), ReadFiles(3)),
        (ReadStage(mode="parallel_reads", num_parallel_calls=4), ReadFiles(4)),
        (ReadStage(mode="sample"), SampleFiles()),
        (ReadStage(mode="sample", weights="uniform"), SampleFiles((1.0, 1.0))),
    ],
    ids=lambda value: getattr(value, "mode", ""),
)
def test_every_way_of_reading_has_its_step(read: ReadStage, step: ReadFiles | SampleFiles):
    assert order_steps(PipelineOptions(stages=(read, BatchStage())), 2, 8)[0] == step


@pytest.mark.parametrize(
    ("stages", "visible"),
    [
        ((ReadStage(), RepeatStage()), None),
        ((ReadStage(), TakeStage(count=25), RepeatStage()), 25),
        ((ReadStage(num_shards=3, shard_index=2, shuffle_files=True), RepeatStage()), 30),
        ((ReadStage(mode="interleave", cycle_length=3), ShardStage(num_shards=4), ShuffleStage(), RepeatStage()), 15),
        ((ReadStage(), ShuffleStage(), TakeStage(count=25), RepeatStage()), None),  # others each time
        ((ReadStage(), RandomShardStage(num_shards=6, shard_size=10), RepeatStage()), None),
        ((ReadStage(), RandomShardStage(num_shards=5, shard_size=10), RepeatStage()), 50),
        ((ReadStage(), ShuffleStage(reshuffle_each_iteration=False), TakeStage(count=25), RepeatStage()), 25),
        ((ReadStage(), RepeatStage(count=3), TakeStage(count=25)), 25),
    ],
    ids=["all", "take", "files", "records", "reshuffled", "all stretches", "some stretches", "shuffled once", "ends"],
)
def test_what_a_pipeline_ever_sees_is_known_before_it_runs(stages: tuple[Stage, ...], visible: int | None):
    pipeline = PipelineOptions(stages=(*stages, BatchStage(size=5)))
    order = predict_order(pipeline, np.array([10, 20, 30]), 3, cores=2)
    assert order is not None
    assert order.visible == visible


def test_what_would_take_too_long_is_not_simulated():
    stages = (ReadStage(), RepeatStage(), ShuffleStage(buffer_size=MAX_RECORDS), BatchStage(size=10))
    assert predict_order(PipelineOptions(stages=stages), np.array([100]), 1, cores=1) is None


def test_thousands_of_epochs_of_a_tiny_set_are_cut_short():
    pipeline = PipelineOptions(stages=(ReadStage(), RepeatStage(), BatchStage(size=10)))
    order = predict_order(pipeline, np.array([3]), 10_000, cores=1)
    assert order is not None
    assert len(order.file) == 3010


@pytest.mark.parametrize("fix", ["sampled-by-size", "equal-shards", "covering-shuffle"])
def test_each_fix_of_unequal_files_keeps_their_shares(fix: str):
    def worst(name: str) -> float:
        options = find_preset(name).options
        assert options.file_sizes is not None
        sizes = np.array(options.file_sizes)
        order = predict_order(options.pipeline, sizes, 187, cores=2)
        assert order is not None
        tenths = np.array_split(order.file, 10)
        shares = sizes / sizes.sum()
        return max(0.5 * float(np.abs(np.bincount(t, minlength=len(sizes)) / len(t) - shares).sum()) for t in tenths)

    assert worst("unequal-files") > 0.4
    assert worst(fix) < 0.1
