"""Rules about amounts: what buffers and caches hold, whether they are large enough, whether the data is."""

import math
import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

import numpy as np

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.element_size import Element, elements_behind
from pipeline_lab.pipeline.finding import Finding, Weight, place_of, stages_of
from pipeline_lab.pipeline.lives import life_steps, predict_run, reachable_examples
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.delivery import PrefetchStage, PrefetchToDeviceStage
from pipeline_lab.stages.functions import LookupStage, ViewsStage
from pipeline_lab.stages.order import ShuffleStage
from pipeline_lab.stages.parts import PartStage
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stage import Stage
from pipeline_lab.stages.stores import StoreStage
from pipeline_lab.units import format_bytes, format_count, format_percent
from pipeline_lab.workloads.features import FeaturesWorkload

LARGE_CONSTANT_BYTES = 50_000_000
"""A constant of 328 MB took 75 s and 5 GB before the first batch (measured with TensorFlow 2.21)."""


def _weak_shuffle(options: RunOptions) -> Iterator[Finding]:
    read, file_sizes = options.pipeline.find("read"), options.file_sizes
    if file_sizes is None or len(file_sizes) < 2:
        return
    if not isinstance(read, ReadStage) or not read.is_in_order or options.pipeline.find("random_shard") is not None:
        return
    read_sizes, elements = file_sizes[read.shard_index :: read.num_shards], elements_behind(options)
    for index, stage in stages_of(options, ShuffleStage):
        views = _views_before(options, index)
        sizes, records = [size * views for size in read_sizes], sum(file_sizes) * views
        buffer_examples = stage.buffer_size * elements[index].examples
        if buffer_examples < max(sizes):
            yield Finding(
                "weak-shuffle",
                Weight.ADVICE,
                index,
                f"The buffer holds {format_count(buffer_examples)} examples, less than the largest file "
                f"({format_count(max(sizes))}), and files are read one after the other: at any time the model sees one "
                f"or two files; interleave the files or use a larger buffer. {_to_cover(records, elements[index])}",
            )
        elif (filling := _files_that_fill(sizes, buffer_examples)) < len(sizes):
            yield Finding(
                "weak-shuffle",
                Weight.ADVICE,
                index,
                f"The buffer of {format_count(buffer_examples)} examples fills from the first {filling} of "
                f"{len(sizes)} files, and files are read one after the other, so the first batches hold nothing else; "
                f"interleave the files or visit them in a new order each epoch. {_to_cover(records, elements[index])}",
            )


def _views_before(options: RunOptions, index: int) -> int:
    """Return how many examples in front of a stage come from one record."""
    place = place_of(options, ViewsStage)
    return options.pipeline.views if place is not None and place < index else 1


def _files_that_fill(sizes: Sequence[int], examples: int) -> int:
    """Return how many files, one after the other, it takes to fill a buffer."""
    return bisect_left(list(accumulate(sizes)), examples) + 1


def _to_cover(records: int, element: Element) -> str:
    size = "" if element.example_bytes is None else f", {format_bytes(records * element.example_bytes)}"
    return f"A buffer that covers the data would hold {format_count(records)} examples{size}."


def _buffer_larger_than_data(options: RunOptions) -> Iterator[Finding]:
    amounts, elements = options.amounts, elements_behind(options)
    for index, stage in stages_of(options, ShuffleStage):
        examples = stage.buffer_size * elements[index].examples
        if amounts is None or examples <= amounts[index].examples:
            continue
        yield Finding(
            "buffer-beyond-data",
            Weight.FACT,
            index,
            f"The buffer has room for {format_count(examples)} examples, but the data has only "
            f"{format_count(int(amounts[index].examples))}: every epoch is shuffled perfectly, the first batch waits "
            "until all of them are read, and the rest of the room is never used.",
        )


def _what_the_run_sees(options: RunOptions) -> Iterator[Finding]:
    sizes, training = options.file_sizes, options.training
    parts = [stage.stage for stage in options.pipeline.stages if _is_part(stage)]
    if sizes is None or training.steps is None or (len(sizes) < 2 and not parts):
        return
    records = np.array(sizes, np.int64)
    order = predict_run(options, records, training.steps + training.warmup_steps, cores=os.cpu_count() or 1)
    if order is None or not len(order.file):
        return
    if order.visible is None:  # stretches in another order each time come all in the end
        parts = [part for part in parts if part != "random_shard"]
    different, examples = len(np.unique(order.number)), order.records.sum()
    opened = len(np.unique(order.file))
    yield Finding(
        "coverage",
        Weight.FACT if opened == len(sizes) else Weight.ADVICE,
        None,
        f"The run will take {format_count(len(order.file))} examples, "
        f"{format_percent(100 * len(order.file) / examples)} of an epoch: "
        f"{format_percent(100 * different / examples)} of the records, from {opened} of {len(sizes)} files"
        + _what_is_left(parts, is_all_open=opened == len(sizes)),
    )


def _starts_over(options: RunOptions) -> Iterator[Finding]:
    """Say what a pipeline that is built anew after each evaluation can reach."""
    amounts, reachable, steps = options.amounts, reachable_examples(options), life_steps(options)
    if amounts is None or reachable is None or steps is None:
        return
    whole = int(amounts[0].examples)
    if reachable < whole:
        yield Finding(
            "starts-over",
            Weight.ADVICE,
            None,
            f"Built anew after every {format_count(steps)} steps, the pipeline always begins with the same examples: the "
            f"model sees at most {format_count(reachable)} of {format_count(whole)}, however long it trains; keep the "
            "pipeline (training.evaluation = keep), or visit the files in a new order each time (read.shuffle_files).",
        )


def _is_part(stage: Stage) -> bool:
    return isinstance(stage, PartStage) or (isinstance(stage, ReadStage) and stage.num_shards > 1)


def _what_is_left(parts: Sequence[str], *, is_all_open: bool) -> str:
    if parts:
        return f"; {' and '.join(dict.fromkeys(parts))} leaves out the others."
    if is_all_open:
        return "."
    return "; train for more steps, or read more files at a time, to use what is left."


def _unequal_files(options: RunOptions) -> Iterator[Finding]:
    read, sizes = options.pipeline.find("read"), options.file_sizes
    if sizes is None or not isinstance(read, ReadStage) or read.is_in_order:
        return
    if read.mode == "sample" and read.weights == "size":
        return
    buffers = [stage.buffer_size for _, stage in stages_of(options, ShuffleStage)]
    if max(sizes) > 1.5 * min(sizes) and max(buffers, default=0) < sum(sizes) / 2:
        yield Finding(
            "unequal-files",
            Weight.ADVICE,
            0,
            f"The files hold from {format_count(min(sizes))} to {format_count(max(sizes))} examples, but all that are "
            "open are read equally fast: small ones run out early and the last batches come from the largest alone; "
            "a shuffle buffer that covers the data mixes them by size.",
        )


def _more_calls_than_open_files(options: RunOptions) -> Iterator[Finding]:
    """Say that tf.data will refuse an interleave (found by experiment with TensorFlow 2.21)."""
    read, cores = options.pipeline.find("read"), os.cpu_count() or 1
    if not isinstance(read, ReadStage) or read.mode != "interleave" or not isinstance(read.num_parallel_calls, int):
        return
    calls, opened = read.num_parallel_calls, read.cycle_length or cores
    if calls <= opened:
        return
    why = "" if read.cycle_length else " cycle_length is not set, so that is one for each core of this machine;"
    yield Finding(
        "interleave-refused",
        Weight.PROBLEM,
        0,
        f"tf.data refuses to read {format_count(calls)} files in parallel where {format_count(opened)} are open at a "
        f"time, and the job fails;{why} set cycle_length to {calls} or more.",
    )


def _too_little_data(options: RunOptions) -> Iterator[Finding]:
    amounts, training = options.amounts, options.training
    if amounts is None or training.steps is None:
        return
    wanted = training.steps + training.warmup_steps
    if amounts[-1].elements < wanted:
        yield Finding(
            "too-little-data",
            Weight.PROBLEM,
            None,
            f"The data is enough for {format_count(int(amounts[-1].elements))} of {format_count(wanted)} steps; add a "
            "repeat stage, or the job ends early.",
        )


def _held(options: RunOptions) -> Iterator[Finding]:
    elements, amounts = elements_behind(options), options.amounts
    for index, stage in enumerate(options.pipeline.stages):
        element, most = elements[index], math.inf if amounts is None else amounts[index].elements
        if isinstance(stage, ShuffleStage):
            yield _holds("shuffle-memory", index, "The shuffle buffer", int(min(stage.buffer_size, most)), element)
        elif isinstance(stage, PrefetchStage | PrefetchToDeviceStage) and stage.buffer_size != "autotune":
            subject = f"{stage.stage}({stage.buffer_size})"
            yield _holds("prefetch-depth", index, subject, stage.buffer_size, element)
        elif isinstance(stage, StoreStage) and not math.isinf(most):
            yield _holds("cache-size", index, f"The {stage.stage}", int(most), element)


def _table_of_vectors(options: RunOptions) -> Iterator[Finding]:
    workload = options.workload
    if not isinstance(workload, FeaturesWorkload):
        return
    table = format_bytes(workload.table_bytes)
    if workload.layout == "replicated" and workload.captions_per_image > 1:
        stored = format_bytes(sum(workload.examples_per_file) * workload.vector_bytes)
        yield Finding(
            "replicated-vectors",
            Weight.ADVICE,
            0,
            f"Every vector is stored {format_count(workload.captions_per_image)} times, {stored} in all, and read as "
            f"often; once each in a table they take {table}: choose another layout.",
        )
    elif workload.layout == "lookup":
        sentence = f"The table of vectors takes {table} on disk; of it, memory holds what was read lately."
        yield Finding("table", Weight.FACT, place_of(options, LookupStage), sentence)
    elif workload.layout == "constant" and workload.table_bytes > LARGE_CONSTANT_BYTES:
        yield Finding(
            "large-constant",
            Weight.ADVICE,
            place_of(options, LookupStage),
            f"The table is a constant of {table}, which TensorFlow copies over and over while it builds the pipeline: that "
            "takes many times its size in memory, and minutes; a variable is not copied.",
        )
    elif workload.held_bytes:
        sentence = f"The table of vectors takes {table} on disk, and as much memory while the job runs."
        yield Finding("table", Weight.FACT, place_of(options, LookupStage), sentence)


def _ragged_batches(options: RunOptions) -> Iterator[Finding]:
    for index, stage in stages_of(options, BatchStage):
        if not stage.drop_remainder:
            yield Finding(
                "last-batch",
                Weight.FACT,
                index,
                "drop_remainder is off: the last batch of the data is smaller, and TensorFlow traces the training step "
                "once more for it.",
            )


def _holds(kind: str, index: int, subject: str, count: int, element: Element) -> Finding:
    """Say how much a stage keeps, in elements, examples and bytes."""
    examples = f"{format_count(count * element.examples)} examples"
    amount = examples if element.examples == 1 else f"{format_count(count)} batches, {examples}"
    size = "" if element.size_bytes is None else f", {format_bytes(count * element.size_bytes)}"
    return Finding(kind, Weight.FACT, index, f"{subject} holds {amount}{size}.")


SIZE_RULES: tuple[Callable[[RunOptions], Iterator[Finding]], ...] = (
    _weak_shuffle,
    _buffer_larger_than_data,
    _unequal_files,
    _more_calls_than_open_files,
    _what_the_run_sees,
    _starts_over,
    _too_little_data,
    _held,
    _table_of_vectors,
    _ragged_batches,
)
