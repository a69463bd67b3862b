"""From a pipeline's options to the order in which it will hand out its records, before anything runs.

Exact where nothing is random, up to the seed elsewhere; parallel stages are taken to keep their order, which
``deterministic = False`` gives up by a few places.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

import numpy as np

from pipeline_lab.stages.batches import BatchStage, BucketStage, RebatchStage, UnbatchStage
from pipeline_lab.stages.functions import ViewsStage
from pipeline_lab.stages.order import RepeatStage, ShuffleStage
from pipeline_lab.stages.parts import FilterStage, RandomShardStage, ShardStage, SkipStage, TakeStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stage import Stage
from pipeline_lab.stages.stores import CacheStage, SaveStage, SnapshotStage
from pipeline_lab.statistics.reading_order import (
    ReadingOrder,
    count_views,
    simulate,
)
from pipeline_lab.statistics.reading_steps import (
    Batch,
    Bucket,
    Cache,
    Filter,
    RandomShard,
    ReadFiles,
    Repeat,
    SampleFiles,
    Shard,
    Shuffle,
    Skip,
    Step,
    Take,
    Unbatch,
    Views,
)
from pipeline_lab.statistics.streams import (
    IntArray,
)

MAX_RECORDS = 5_000_000
"""More are not simulated: it would take seconds."""

MAX_EPOCHS = 1000
"""What a run covers does not change any more after so many."""


def order_steps(pipeline: PipelineOptions, files: int, cores: int, buckets: IntArray | None = None) -> tuple[Step, ...]:
    """Return the stages that change the order of the records.

    Args:
        pipeline: The stages as written.
        files: How many files there are.
        cores: Of the machine that runs it: tf.data chooses by them how many files to open where nobody says.
        buckets: Bucket of each record, shape (records,); without it, sorting by length is left out.
    """
    return tuple(_steps(pipeline, files, cores, buckets))


def predict_order(
    pipeline: PipelineOptions,
    records: IntArray,
    batches: int,
    *,
    cores: int,
    seed: int = 0,
    buckets: IntArray | None = None,
) -> ReadingOrder | None:
    """Return what the first batches will hold.

    Args:
        pipeline: The stages as written.
        records: Records of each file, shape (files,).
        batches: How many batches to take; fewer come if the data ends.
        cores: Of the machine that runs it.
        seed: Of everything that is random.
        buckets: Bucket of each record, shape (records,), for pipelines that sort by length; None where lengths are not
            known before they are read.

    Returns:
        None if it would take more than :data:`MAX_RECORDS` records to say, if the batches go by lengths that are not
        known, or if workers of a service share the files as they come to it.
    """
    if pipeline.find("service") is not None:
        return None
    if pipeline.find("bucket_by_sequence_length") is not None and buckets is None:
        return None
    total = int(records.sum()) * pipeline.views
    batches = min(batches, MAX_EPOCHS * total // pipeline.batch_size + 1)
    if _looked_at(pipeline, total, batches) > MAX_RECORDS:
        return None
    steps = order_steps(pipeline, len(records), cores, buckets)
    return replace(simulate(records, steps, batches, seed=seed), visible=count_visible(steps, records))


def count_visible(steps: Sequence[Step], records: IntArray) -> int | None:
    """Count the records that the stages ever let through; None where they leave out none for good.

    What stands behind a stage that hands on another order each time sees other records each time, in the end all.

    Args:
        steps: The stages that change the order.
        records: Records of each file, shape (files,).
    """
    fixed = list(takewhile(_is_fixed, steps))
    first = steps[0]
    if not fixed and isinstance(first, ReadFiles):
        fixed = [ReadFiles(num_shards=first.num_shards, shard_index=first.shard_index)]
    if not any(isinstance(step, Take | Skip | Shard | RandomShard) or _is_sharded(step) for step in fixed):
        return None
    order = simulate(records, fixed, int(records.sum()) * count_views(fixed) + 1)
    visible = len(np.unique(order.number)) * count_views(steps) // count_views(fixed)
    return None if visible == int(records.sum()) * count_views(steps) else visible


def _is_fixed(step: Step) -> bool:
    """Say whether a step hands on the same elements each time."""
    if isinstance(step, ReadFiles):
        return not step.shuffle_files
    if isinstance(step, Shuffle):
        return not step.reshuffle_each_iteration
    return not isinstance(step, SampleFiles | Filter | Repeat)


def _is_sharded(step: Step) -> bool:
    return isinstance(step, ReadFiles) and step.num_shards > 1


def _steps(pipeline: PipelineOptions, files: int, cores: int, buckets: IntArray | None) -> Iterator[Step]:
    size = 1
    for stage, behind in zip(pipeline.stages, pipeline.batch_sizes, strict=True):
        if isinstance(stage, ReadStage):
            yield _read(stage, files, cores)
        elif isinstance(stage, UnbatchStage | RebatchStage):
            yield Unbatch(size)
        elif isinstance(stage, ViewsStage):
            yield Views(stage.views)
        elif isinstance(stage, BucketStage) and buckets is not None:
            yield Bucket(buckets, stage.batch_sizes, stage.drop_remainder)
        elif isinstance(stage, CacheStage | SnapshotStage | SaveStage):
            yield Cache()
        elif isinstance(stage, ShuffleStage):
            yield Shuffle(stage.buffer_size, stage.reshuffle_each_iteration)
        elif isinstance(stage, RepeatStage):
            yield Repeat(stage.count)
        else:
            yield from _part(stage)
        if isinstance(stage, BatchStage | RebatchStage):
            yield Batch(stage.size, stage.drop_remainder)
        size = behind or 1


def _part(stage: Stage) -> Iterator[Step]:
    if isinstance(stage, TakeStage):
        yield Take(stage.count)
    elif isinstance(stage, SkipStage):
        yield Skip(stage.count)
    elif isinstance(stage, ShardStage):
        yield Shard(stage.num_shards, stage.index)
    elif isinstance(stage, RandomShardStage):
        yield RandomShard(stage.num_shards, stage.shard_size)
    elif isinstance(stage, FilterStage):
        yield Filter(stage.keep_percent / 100)


def _read(stage: ReadStage, files: int, cores: int) -> Step:
    shard = {"num_shards": stage.num_shards, "shard_index": stage.shard_index}
    if stage.is_in_order:
        return ReadFiles(shuffle_files=stage.shuffle_files, **shard)
    if stage.mode == "sample":
        return SampleFiles(None if stage.weights == "size" else (1.0,) * files)
    cycle = stage.cycle_length or _default_cycle(stage, cores)
    return ReadFiles(cycle, stage.block_length, stage.shuffle_files, **shard)


def _default_cycle(stage: ReadStage, cores: int) -> int:
    """Return how many files tf.data opens at once on its own (found by experiment with TensorFlow 2.21)."""
    if stage.num_parallel_calls is None:
        return cores
    if stage.num_parallel_calls == "autotune":
        return -(-cores // 3)
    return stage.num_parallel_calls


def _looked_at(pipeline: PipelineOptions, total: int, batches: int) -> int:
    """Return at most how many records the simulation holds: what the last stage asks for, back to the reading."""
    wanted = batches
    sizes = (None, *pipeline.batch_sizes[:-1])
    for index, (stage, size) in reversed(list(enumerate(zip(pipeline.stages, sizes, strict=True)))):
        if isinstance(stage, ShuffleStage):
            has_repeat = any(isinstance(each, RepeatStage) for each in pipeline.stages[:index])
            wanted += stage.buffer_size if has_repeat else min(stage.buffer_size, -(-total // (size or 1)))
        else:
            wanted = _asked_for(stage, size or 1, wanted)
    return wanted


def _asked_for(stage: Stage, size: int, wanted: int) -> int:
    """Return how many elements a stage asks for, each of so many examples, to give so many."""
    if isinstance(stage, BatchStage | BucketStage | RebatchStage | UnbatchStage):
        return _asked_for_batches(stage, size, wanted)
    if isinstance(stage, ViewsStage):
        return -(-wanted // stage.views)
    if isinstance(stage, TakeStage):
        return min(wanted, stage.count)
    if isinstance(stage, SkipStage):
        return wanted + stage.count
    if isinstance(stage, ShardStage):
        return wanted * stage.num_shards
    if isinstance(stage, RandomShardStage):
        return wanted * (stage.num_shards + 1) // 2 + stage.num_shards * stage.shard_size
    if isinstance(stage, FilterStage):
        return int(wanted / stage.keep_percent * 100)
    return wanted


def _asked_for_batches(stage: BatchStage | BucketStage | RebatchStage | UnbatchStage, size: int, wanted: int) -> int:
    if isinstance(stage, BatchStage):
        return wanted * stage.size
    if isinstance(stage, BucketStage):
        return wanted * max(stage.batch_sizes) + sum(stage.batch_sizes)
    if isinstance(stage, RebatchStage):
        return -(-wanted * stage.size // size)
    return -(-wanted // size)
