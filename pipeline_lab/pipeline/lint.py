"""Advice on a pipeline from its options alone, before anything runs: what its stages, its workload and the whole say."""

import math
import os
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.predicted_order import life_steps, predict_order, predict_run, reachable_examples
from pipeline_lab.stages.stage_values import Element, Position, Remark, Weight
from pipeline_lab.statistics.mixing import expected_same_source, same_source_examples
from pipeline_lab.units import format_bytes, format_count, format_percent

LOOKED_AT = 200
"""Batches that are simulated at most to see which views meet."""


def lint_pipeline(options: RunOptions) -> tuple[Remark, ...]:
    """Return all remarks, problems first, each weight in the order of the stages; none on a dataset of the user's own."""
    if not options.is_assembled:
        return ()
    places = _places(options)
    remarks = [remark for place in places for remark in place.stages[place.index].remarks(place)]
    remarks += options.workload.remarks(places)
    remarks += [remark for rule in RULES for remark in rule(options)]
    order = list(Weight)
    return tuple(sorted(remarks, key=lambda remark: (order.index(remark.weight), remark.stage or 0)))


def _places(options: RunOptions) -> tuple[Position, ...]:
    pipeline = options.pipeline
    return tuple(
        Position(
            index,
            pipeline.stages,
            pipeline.batch_sizes,
            options.elements,
            options.amounts,
            options.file_sizes,
            options.workload,
            pipeline.private_threadpool_size,
            pipeline.tensorflow_rewrites,
        )
        for index in range(len(pipeline.stages))
    )


def _missing_prefetch(options: RunOptions) -> Iterator[Remark]:
    stages = options.pipeline.stages
    last = len(stages) - 1
    if stages[last].prefetches:
        return
    if any(stage.prefetches for stage in stages):
        yield Remark(
            "prefetch-not-last",
            Weight.ADVICE,
            last,
            f"prefetch is not the last stage: {stages[last].stage} after it still makes the training step wait.",
        )
    elif not options.pipeline.tensorflow_rewrites:
        yield Remark(
            "no-prefetch",
            Weight.ADVICE,
            last,
            "There is no prefetch: batches are prepared while the device waits, and the device waits while they are "
            "prepared; add prefetch as the last stage.",
        )
    else:
        yield Remark(
            "injected-prefetch",
            Weight.FACT,
            last,
            "There is no prefetch; TensorFlow's rewrites, which are on, add one at the end unless the last stage "
            "prefetches itself.",
        )


def _idle_slack(options: RunOptions) -> Iterator[Remark]:
    stages = options.pipeline.stages
    if options.pipeline.slack and stages[-1].stage != "prefetch":
        yield Remark(
            "idle-slack",
            Weight.ADVICE,
            len(stages) - 1,
            "slack changes nothing unless prefetch is the last stage; add it there, or turn slack off.",
        )


def _what_the_run_sees(options: RunOptions) -> Iterator[Remark]:
    sizes, training = options.file_sizes, options.training
    parts = [stage for stage in options.pipeline.stages if stage.leaves_out]
    if sizes is None or training.steps is None or (len(sizes) < 2 and not parts):
        return
    records = np.array(sizes, np.int64)
    order = predict_run(options, records, training.steps + training.warmup_steps, cores=os.cpu_count() or 1)
    if order is None or not len(order.file):
        return
    if order.visible is None:  # stretches in another order each time come all in the end
        parts = [part for part in parts if not part.reorders_each_pass]
    different, whole = len(np.unique(order.number)), order.records.sum()
    epoch = options.pipeline.epoch(sizes).examples
    opened = len(np.unique(order.file))
    yield Remark(
        "coverage",
        Weight.FACT if opened == len(sizes) else Weight.ADVICE,
        None,
        f"The run will take {format_count(len(order.file))} examples, "
        f"{format_percent(100 * len(order.file) / epoch)} of an epoch: "
        f"{format_percent(100 * different / whole)} of the records, from {opened} of {len(sizes)} files"
        + _what_is_left([part.stage for part in parts], is_all_open=opened == len(sizes)),
    )


def _starts_over(options: RunOptions) -> Iterator[Remark]:
    """Say what a pipeline that is rebuilt after each evaluation can reach."""
    amounts, reachable, steps = options.amounts, reachable_examples(options), life_steps(options)
    if amounts is None or reachable is None or steps is None:
        return
    whole = int(amounts[0].examples)
    if reachable < whole:
        yield Remark(
            "starts-over",
            Weight.ADVICE,
            None,
            f"Rebuilt after every {format_count(steps)} steps, the pipeline always starts with the same examples: the "
            f"model sees at most {format_count(reachable)} of {format_count(whole)}, however long it trains; keep the "
            "pipeline (training.evaluation = keep), or visit the files in a new order each time (read.shuffle_files).",
        )


def _what_is_left(parts: Sequence[str], *, is_all_open: bool) -> str:
    if parts:
        return f"; {' and '.join(dict.fromkeys(parts))} leaves out the others."
    if is_all_open:
        return "."
    return "; train for more steps, or read more files at a time, to use what is left."


def _too_little_data(options: RunOptions) -> Iterator[Remark]:
    amounts, training = options.amounts, options.training
    if amounts is None or training.steps is None:
        return
    wanted = training.steps + training.warmup_steps
    if amounts[-1].elements < wanted:
        yield Remark(
            "too-little-data",
            Weight.PROBLEM,
            None,
            f"The data is enough for {format_count(int(amounts[-1].elements))} of {format_count(wanted)} steps; add a "
            "repeat stage, or the job ends early.",
        )


def _held(options: RunOptions) -> Iterator[Remark]:
    """Say how much each stage keeps, in elements, examples and bytes."""
    for index, (stage, element) in enumerate(zip(options.pipeline.stages, options.elements, strict=True)):
        found = stage.holds(math.inf if options.amounts is None else options.amounts[index].elements)
        if found is not None:
            kind, subject, count = found
            yield Remark(kind, Weight.FACT, index, f"{subject} holds {_amount(count, element)}.")


def _amount(count: int, element: Element) -> str:
    examples = f"{format_count(count * element.examples)} examples"
    amount = examples if element.examples == 1 else f"{format_count(count)} batches, {examples}"
    return amount if element.size_bytes is None else f"{amount}, {format_bytes(count * element.size_bytes)}"


def _views_together(options: RunOptions) -> Iterator[Remark]:
    pipeline = options.pipeline
    place = next((index for index, stage in enumerate(pipeline.stages) if stage.copies > 1), None)
    if place is None:
        return
    met = _meet(options)
    of_batch = "" if met is None else f": of {pipeline.batch_size}, {met[0]:.3g} share their image with another one"
    behind = list(zip(pipeline.stages, pipeline.batch_sizes, strict=True))[place + 1 :]
    if not any(stage.buffered and size is None for stage, size in behind):
        yield Remark(
            "views-together",
            Weight.PROBLEM,
            place,
            f"The {pipeline.views} views of an image come one after another, and nothing shuffles them before batch, so "
            f"they meet there{of_batch}; put shuffle after views.",
        )
    elif met is not None:
        found, expected = met
        is_weak = found > 2 * expected + 1
        yield Remark(
            "views-in-batch",
            Weight.ADVICE if is_weak else Weight.FACT,
            place,
            f"In a batch of {pipeline.batch_size}, {found:.3g} examples will share their image with another one, where a "
            f"perfect shuffle has {expected:.3g}{'; shuffle after views with a larger buffer' if is_weak else ''}.",
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


RULES: tuple[Callable[[RunOptions], Iterator[Remark]], ...] = (
    _missing_prefetch,
    _idle_slack,
    _what_the_run_sees,
    _starts_over,
    _too_little_data,
    _held,
    _views_together,
)
