"""The order in which a pipeline will hand out its records, from its stages, before anything runs.

Exact where nothing is random, up to the seed elsewhere; parallel stages are taken to keep their order, which
``deterministic = False`` gives up by a few places. Pipelines that are built again after every evaluation begin again with
the same records each time.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from operator import attrgetter

import numpy as np

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.pipeline import StageSequence
from pipeline_lab.stages.stage_values import Reading
from pipeline_lab.statistics.reading_order import ReadingOrder, count_views, simulate
from pipeline_lab.statistics.reading_steps import OrderStep, ReadFiles
from pipeline_lab.statistics.streams import IntArray

MAX_RECORDS = 5_000_000
"""More are not simulated: it would take seconds."""
MAX_EPOCHS = 1000
"""Later ones do not change what a run covers."""
MAX_LIVES = 200
"""More rebuilds are not simulated: each fills its buffers again."""


def order_steps(
    pipeline: StageSequence, files: int, cores: int, buckets: IntArray | None = None
) -> tuple[OrderStep, ...]:
    """Return the stages that change the order of the records.

    Args:
        pipeline: The stages as written.
        files: How many files there are.
        cores: Of the machine that runs it: tf.data chooses by them how many files to open where nobody says.
        buckets: Bucket of each record, shape (records,); without it, sorting by length is left out.
    """
    found = _order(pipeline, files, cores, buckets)
    return tuple(step for steps in found for step in steps or ())


def predict_order(
    pipeline: StageSequence,
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
    if any(steps is None for steps in _order(pipeline, len(records), cores, buckets)):
        return None
    total = int(records.sum()) * pipeline.views
    batches = min(batches, MAX_EPOCHS * total // pipeline.batch_size + 1)
    if _looked_at(pipeline, total, batches) > MAX_RECORDS:
        return None
    steps = order_steps(pipeline, len(records), cores, buckets)
    return replace(simulate(records, steps, batches, seed=seed), visible=count_visible(steps, records))


def count_visible(steps: Sequence[OrderStep], records: IntArray) -> int | None:
    """Count the records that the stages ever let through; None where they leave out none permanently.

    What comes after a stage that changes the order each time sees other records each time, in the end all.

    Args:
        steps: The stages that change the order.
        records: Records of each file, shape (files,).
    """
    fixed = list(takewhile(attrgetter("is_fixed"), steps))
    first = steps[0]
    if not fixed and isinstance(first, ReadFiles):
        fixed = [ReadFiles(num_shards=first.num_shards, shard_index=first.shard_index)]
    if not any(step.leaves_out for step in fixed):
        return None
    order = simulate(records, fixed, int(records.sum()) * count_views(fixed) + 1)
    visible = len(np.unique(order.number)) * count_views(steps) // count_views(fixed)
    return None if visible == int(records.sum()) * count_views(steps) else visible


def _order(stages: StageSequence, files: int, cores: int, buckets: IntArray | None) -> list[Iterable[OrderStep] | None]:
    """Return the steps of each stage, None for one whose order nobody can tell."""
    sizes = (None, *stages.batch_sizes[:-1])
    return [
        stage.order(Reading(files, cores, size or 1, buckets)) for stage, size in zip(stages.stages, sizes, strict=True)
    ]


def _looked_at(stages: StageSequence, total: int, batches: int) -> int:
    """Return at most how many records the simulation holds: what the last stage asks for, back to the reading."""
    wanted = batches
    sizes = (None, *stages.batch_sizes[:-1])
    for index in range(len(stages.stages) - 1, -1, -1):
        size = sizes[index] or 1
        is_repeated = any(stage.repeats for stage in stages.stages[:index])
        wanted = stages.stages[index].asks_for(wanted, size, math.inf if is_repeated else -(-total // size))
    return wanted


def life_steps(options: RunOptions) -> int | None:
    """Return the steps from one building of the training pipeline to the next; None if it is built once."""
    training = options.training
    return training.evaluate_every if training.evaluation == "rebuild" else None


def predict_run(
    options: RunOptions, records: IntArray, batches: int, *, cores: int, seed: int = 0
) -> ReadingOrder | None:
    """Return what the first batches of a run will hold; arguments as for :func:`predict_order`."""
    steps, buckets = life_steps(options), options.workload.buckets(options.pipeline, options.file_sizes)
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
    steps, pipeline = life_steps(options), options.pipeline
    if steps is None or not options.is_assembled or pipeline.stages[0].mixes:
        return None
    if any(stage.reorders_each_pass for stage in pipeline.stages):
        return None
    held = sum(
        (stage.buffered or 0) * (size or 1) for stage, size in zip(pipeline.stages, pipeline.batch_sizes, strict=True)
    )
    longest = steps + options.training.steps_per_call - 1  # evaluations wait for the end of a call
    return longest * options.pipeline.batch_size + held
