"""Pipelines that are built anew after every evaluation: what they hand out life by life, and what they can reach at most."""

from dataclasses import replace

import numpy as np

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.clip_lengths import buckets_of
from pipeline_lab.pipeline.reading_order import predict_order
from pipeline_lab.stages.order import ShuffleStage
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.statistics.reading_order import ReadingOrder
from pipeline_lab.statistics.streams import IntArray

MAX_LIVES = 200
"""More are not simulated: each fills its buffers again."""


def life_steps(options: RunOptions) -> int | None:
    """Return the steps from one building of the training pipeline to the next; None if it is built once."""
    training = options.training
    return training.evaluate_every if training.evaluation == "rebuild" else None


def predict_run(
    options: RunOptions, records: IntArray, batches: int, *, cores: int, seed: int = 0
) -> ReadingOrder | None:
    """Return what the first batches of a run will hold; arguments as for :func:`predict_order`."""
    steps, buckets = life_steps(options), buckets_of(options)
    if steps is None or steps >= batches:
        return predict_order(options.pipeline, records, batches, cores=cores, seed=seed, buckets=buckets)
    if batches > MAX_LIVES * steps:
        return None
    lives = []
    for life, first in enumerate(range(0, batches, steps)):
        length = min(steps, batches - first)
        order = predict_order(options.pipeline, records, length, cores=cores, seed=seed + life, buckets=buckets)
        if order is None:
            return None
        lives.append(replace(order, batch=order.batch + first))
    batch, file, record = (
        np.concatenate([getattr(life, name) for life in lives]) for name in ("batch", "file", "record")
    )
    return replace(lives[0], batch=batch, file=file, record=record)


def reachable_examples(options: RunOptions) -> int | None:
    """Return how many examples a pipeline that starts over can ever hand out: a life's batches, and what buffers hold.

    Returns:
        None for a pipeline that goes on, or that begins with other records each time.
    """
    steps, read = life_steps(options), options.pipeline.find("read")
    if steps is None or not isinstance(read, ReadStage) or read.shuffle_files or read.mode == "sample":
        return None
    if options.pipeline.find("random_shard") is not None:
        return None
    stages, sizes = options.pipeline.stages, options.pipeline.batch_sizes
    held = sum(
        stage.buffer_size * (size or 1)
        for stage, size in zip(stages, sizes, strict=True)
        if isinstance(stage, ShuffleStage)
    )
    longest = steps + options.training.steps_per_call - 1  # evaluations wait for the end of a call
    return longest * options.pipeline.batch_size + held
