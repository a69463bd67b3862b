"""Rules about amounts: what buffers and caches hold, whether they are large enough, whether the data is."""

from collections.abc import Callable, Iterator

from pipeline_lab.options.pipeline import (
    BatchStage,
    CacheStage,
    PrefetchStage,
    ReadStage,
    RepeatStage,
    ShuffleStage,
)
from pipeline_lab.options.run import RunOptions
from pipeline_lab.pipeline.element_size import Element, elements_behind
from pipeline_lab.pipeline.finding import Finding, Weight, stages_of
from pipeline_lab.units import format_bytes, format_count


def _weak_shuffle(options: RunOptions) -> Iterator[Finding]:
    read = options.pipeline.find("read")
    sizes = options.file_sizes
    if sizes is None or len(sizes) < 2 or not isinstance(read, ReadStage) or read.mode != "sequential":
        return
    elements = elements_behind(options)
    for index, stage in stages_of(options, ShuffleStage):
        buffer_examples = stage.buffer_size * elements[index].examples
        if buffer_examples < max(sizes):
            yield Finding(
                "weak-shuffle",
                Weight.ADVICE,
                index,
                f"The buffer holds {format_count(buffer_examples)} examples, less than the largest file "
                f"({format_count(max(sizes))}), and files are read one after the other: at any time the model sees one "
                "or two files; interleave the files or use a larger buffer.",
            )


def _unequal_files(options: RunOptions) -> Iterator[Finding]:
    read, sizes = options.pipeline.find("read"), options.file_sizes
    if sizes is None or not isinstance(read, ReadStage) or read.mode == "sequential":
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


def _too_little_data(options: RunOptions) -> Iterator[Finding]:
    records, training = options.records, options.training
    if records is None or training.steps is None:
        return
    epochs = 1
    for _, stage in stages_of(options, RepeatStage):
        if stage.count is None:
            return
        epochs *= stage.count
    batch = options.pipeline.find("batch")
    is_last_kept = isinstance(batch, BatchStage) and not batch.drop_remainder
    steps, rest = divmod(records * epochs, options.pipeline.batch_size)
    steps += bool(rest) and is_last_kept
    wanted = training.steps + training.warmup_steps
    if steps < wanted:
        yield Finding(
            "too-little-data",
            Weight.PROBLEM,
            None,
            f"The data is enough for {format_count(steps)} of {format_count(wanted)} steps; add a repeat stage, "
            "or the job ends early.",
        )


def _held_in_memory(options: RunOptions) -> Iterator[Finding]:
    elements, records = elements_behind(options), options.records
    for index, stage in enumerate(options.pipeline.stages):
        element = elements[index]
        if isinstance(stage, ShuffleStage):
            is_repeated = any(place < index for place, _ in stages_of(options, RepeatStage))
            most = stage.buffer_size if records is None or is_repeated else _elements_of(records, element)
            yield _holds("shuffle-memory", index, "The shuffle buffer", min(stage.buffer_size, most), element)
        elif isinstance(stage, PrefetchStage) and stage.buffer_size != "autotune":
            yield _holds("prefetch-depth", index, f"prefetch({stage.buffer_size})", stage.buffer_size, element)
        elif isinstance(stage, CacheStage) and records is not None:
            yield _holds("cache-size", index, "The cache", _elements_of(records, element), element)


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


def _elements_of(records: int, element: Element) -> int:
    return -(-records // element.examples)


def _holds(kind: str, index: int, subject: str, count: int, element: Element) -> Finding:
    """Say how much a stage keeps, in elements, examples and bytes."""
    examples = f"{format_count(count * element.examples)} examples"
    amount = examples if element.examples == 1 else f"{format_count(count)} batches, {examples}"
    size = "" if element.size_bytes is None else f", {format_bytes(count * element.size_bytes)}"
    return Finding(kind, Weight.FACT, index, f"{subject} holds {amount}{size}.")


SIZE_RULES: tuple[Callable[[RunOptions], Iterator[Finding]], ...] = (
    _weak_shuffle,
    _unequal_files,
    _too_little_data,
    _held_in_memory,
    _ragged_batches,
)
