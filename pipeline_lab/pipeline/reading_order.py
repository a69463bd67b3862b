"""From a pipeline's options to the order in which it will hand out its records, before anything runs.

Exact where nothing is random, up to the seed elsewhere; parallel stages are taken to keep their order, which
``deterministic = False`` gives up by a few places.
"""

from collections.abc import Iterator

from pipeline_lab.options.pipeline import BatchStage, CacheStage, PipelineOptions, ReadStage, RepeatStage, ShuffleStage
from pipeline_lab.statistics.reading_order import (
    Batch,
    Cache,
    IntArray,
    ReadFiles,
    ReadingOrder,
    Repeat,
    SampleFiles,
    Shuffle,
    Step,
    simulate,
)

MAX_RECORDS = 5_000_000
"""More are not simulated: it would take seconds."""

MAX_EPOCHS = 1000
"""What a run covers does not change any more after so many."""


def order_steps(pipeline: PipelineOptions, files: int, cores: int) -> tuple[Step, ...]:
    """Return the stages that change the order of the records.

    Args:
        pipeline: The stages as written.
        files: How many files there are.
        cores: Of the machine that runs it: tf.data chooses by them how many files to open where nobody says.
    """
    return tuple(_steps(pipeline, files, cores))


def predict_order(
    pipeline: PipelineOptions, records: IntArray, batches: int, *, cores: int, seed: int = 0
) -> ReadingOrder | None:
    """Return what the first batches will hold.

    Args:
        pipeline: The stages as written.
        records: Records of each file, shape (files,).
        batches: How many batches to take; fewer come if the data ends.
        cores: Of the machine that runs it.
        seed: Of everything that is random.

    Returns:
        None if it would take more than :data:`MAX_RECORDS` records to say.
    """
    total = int(records.sum())
    batches = min(batches, MAX_EPOCHS * total // pipeline.batch_size + 1)
    if _looked_at(pipeline, total, batches) > MAX_RECORDS:
        return None
    return simulate(records, order_steps(pipeline, len(records), cores), batches, seed=seed)


def _steps(pipeline: PipelineOptions, files: int, cores: int) -> Iterator[Step]:
    for stage in pipeline.stages:
        if isinstance(stage, ReadStage):
            yield _read(stage, files, cores)
        elif isinstance(stage, CacheStage):
            yield Cache()
        elif isinstance(stage, ShuffleStage):
            yield Shuffle(stage.buffer_size, stage.reshuffle_each_iteration)
        elif isinstance(stage, RepeatStage):
            yield Repeat(stage.count)
        elif isinstance(stage, BatchStage):
            yield Batch(stage.size, stage.drop_remainder)


def _read(stage: ReadStage, files: int, cores: int) -> Step:
    if stage.mode == "sequential":
        return ReadFiles(shuffle_files=stage.shuffle_files)
    if stage.mode == "sample":
        return SampleFiles(None if stage.weights == "size" else (1.0,) * files)
    cycle = stage.cycle_length or _default_cycle(stage, cores)
    return ReadFiles(cycle, stage.block_length, stage.shuffle_files)


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
    for index, stage in reversed(list(enumerate(pipeline.stages))):
        earlier = {each.stage for each in pipeline.stages[:index]}
        if isinstance(stage, BatchStage):
            wanted *= stage.size
        elif isinstance(stage, ShuffleStage) and "repeat" in earlier:
            wanted += stage.buffer_size
        elif isinstance(stage, ShuffleStage):
            elements = -(-total // pipeline.batch_size) if "batch" in earlier else total
            wanted += min(stage.buffer_size, elements)
    return wanted
