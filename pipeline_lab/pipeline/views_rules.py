"""Rules about several views of one image: how many of them will meet in a batch."""

import os
from collections.abc import Callable, Iterator

import numpy as np

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.finding import Finding, Weight, place_of, stages_of
from pipeline_lab.pipeline.reading_order import predict_order
from pipeline_lab.stages.functions import ViewsStage
from pipeline_lab.stages.order import ShuffleStage
from pipeline_lab.statistics.same_source import expected_same_source, same_source_examples

LOOKED_AT = 200
"""Batches that are simulated at most."""


def _views_together(options: RunOptions) -> Iterator[Finding]:
    place, pipeline = place_of(options, ViewsStage), options.pipeline
    if place is None or pipeline.views == 1:
        return
    met = _meet(options)
    of_batch = "" if met is None else f": of {pipeline.batch_size}, {met[0]:.3g} share their image with another one"
    if not any(index > place and pipeline.batch_sizes[index] is None for index, _ in stages_of(options, ShuffleStage)):
        yield Finding(
            "views-together",
            Weight.PROBLEM,
            place,
            f"The {pipeline.views} views of an image come one after another, and nothing shuffles them before batch, so "
            f"that they meet there{of_batch}; put shuffle behind views.",
        )
    elif met is not None:
        found, expected = met
        is_weak = found > 2 * expected + 1
        yield Finding(
            "views-in-batch",
            Weight.ADVICE if is_weak else Weight.FACT,
            place,
            f"In a batch of {pipeline.batch_size}, {found:.3g} examples will share their image with another one, where a "
            f"perfect shuffle has {expected:.3g}{'; shuffle behind views with a larger buffer' if is_weak else ''}.",
        )


def _meet(options: RunOptions) -> tuple[float, float] | None:
    """Return how many examples of a batch share their image as options predict it, and in a perfect shuffle."""
    sizes, views = options.file_sizes, options.pipeline.views
    if sizes is None:
        return None
    order = predict_order(options.pipeline, np.array(sizes, np.int64), LOOKED_AT, cores=os.cpu_count() or 1)
    if order is None or not len(order.file):
        return None
    found = same_source_examples(order.batch, order.number // views).mean()
    return float(found), expected_same_source(options.pipeline.batch_size, sum(sizes), views)


VIEWS_RULES: tuple[Callable[[RunOptions], Iterator[Finding]], ...] = (_views_together,)
