"""The order in which an input pipeline hands out its records, simulated without reading any of them.

Each stage that changes the order turns a stream into another one, as the tf.data stage of that name does; the others
(map, parse, prefetch) have no place here. What tf.data decides by its own seed is drawn from another one, so a
simulated order agrees with a real one in distribution, and exactly where nothing is random.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline_lab.statistics.reading_parts import bucket, filter_, random_shard, unbatch, views
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
from pipeline_lab.statistics.record_stream import NOTHING, IntArray, Stream


@dataclass(frozen=True, eq=False)
class ReadingOrder:
    """Which records came when.

    Attributes:
        batch: Number of the batch that each record is in, ascending, shape (n,).
        file: Index of its file, shape (n,).
        record: Its number inside the file, shape (n,); views of one record are numbered as if each were a record.
        records: Records of each file, or views where there are any, shape (files,).
        visible: Records that could ever come, however long one reads; None where all can.
    """

    batch: IntArray
    file: IntArray
    record: IntArray
    records: IntArray
    visible: int | None = None

    @property
    def number(self) -> IntArray:
        """Each record's place in the data, files laid one after another, shape (n,)."""
        return (np.cumsum(self.records) - self.records)[self.file] + self.record


def simulate(records: IntArray, steps: Sequence[Step], batches: int, *, seed: int = 0) -> ReadingOrder:
    """Return the records of the first batches that a pipeline hands out.

    Args:
        records: Records of each file, shape (files,).
        steps: The stages that change the order, from the reading to the batches.
        batches: How many batches (elements, if nothing is batched) to take; fewer come if the data ends.
        seed: Of everything that is random.
    """
    rng = np.random.default_rng(seed)
    stream = _build(records, steps[0], rng)
    for step in steps[1:]:
        stream = _apply(step, stream, rng)
    elements = stream(batches)
    flat = elements.ravel()
    batch = np.repeat(np.arange(len(elements), dtype=np.int64), elements.shape[1])
    kept = flat != NOTHING
    examples = records * count_views(steps)
    file, record = locate(examples, flat[kept])
    return ReadingOrder(batch[kept], file, record, examples)


def count_views(steps: Sequence[Step]) -> int:
    """Return how many examples become of one record."""
    return math.prod(step.count for step in steps if isinstance(step, Views))


def locate(records: IntArray, number: IntArray) -> tuple[IntArray, IntArray]:
    """Return file and place in the file of records that are numbered through all files."""
    first = np.cumsum(records) - records
    if records.sum() <= 4 * len(number):  # a table is quicker where it is not much longer than what is asked
        file = np.repeat(np.arange(len(records), dtype=np.int64), records)[number]
    else:
        file = np.searchsorted(first, number, side="right").astype(np.int64) - 1
    return file, number - first[file]


def _build(records: IntArray, step: Step, rng: np.random.Generator) -> Stream:
    if isinstance(step, ReadFiles):
        return _read(records, step, rng)
    if isinstance(step, SampleFiles):
        return _sample(records, step, rng)
    raise ValueError(f"a reading order begins with a reading step, not with {type(step).__name__}")


def _apply(step: Step, upstream: Stream, rng: np.random.Generator) -> Stream:
    if isinstance(step, Shuffle):
        return _shuffle(upstream, step, rng)
    if isinstance(step, Repeat):
        return _repeat(upstream, step)
    if isinstance(step, Cache):
        return _cache(upstream)
    if isinstance(step, Batch):
        return _batch(upstream, step)
    if isinstance(step, Bucket):
        return bucket(upstream, step)
    if isinstance(step, Unbatch):
        return unbatch(upstream, step)
    if isinstance(step, Views):
        return views(upstream, step)
    return _apply_part(step, upstream, rng)


def _apply_part(step: Step, upstream: Stream, rng: np.random.Generator) -> Stream:
    if isinstance(step, Take):
        return lambda wanted: upstream(min(wanted, step.count))
    if isinstance(step, Skip):
        return lambda wanted: upstream(step.count + wanted)[step.count :]
    if isinstance(step, Shard):
        return lambda wanted: upstream(wanted * step.num_shards)[step.index :: step.num_shards]
    if isinstance(step, RandomShard):
        return random_shard(upstream, step, rng)
    if isinstance(step, Filter):
        return filter_(upstream, step, rng)
    raise ValueError(f"{type(step).__name__} can only come first")


def _read(records: IntArray, step: ReadFiles, rng: np.random.Generator) -> Stream:
    def take(wanted: int) -> IntArray:
        order = np.arange(step.shard_index, len(records), step.num_shards)
        if step.shuffle_files:
            order = rng.permutation(order)
        return interleave(records, order, step, wanted)[:, np.newaxis]

    return take


def interleave(records: IntArray, order: IntArray, step: ReadFiles, wanted: int) -> IntArray:
    """Return the first records of an interleave.

    Every slot of the cycle is visited in turn for at most a block. A visit that finds its file at the end gives
    nothing more, and the next visit opens the next file: a file of ``n`` records takes ``n // block + 1`` visits,
    in the sequential and the parallel interleave and for ``num_parallel_reads`` alike.

    Args:
        records: Records of each file, shape (files,).
        order: The files in the order in which they are opened.
        step: Cycle and block.
        wanted: Largest number of records to return.
    """
    block = step.block_length
    slot, start = _visits(records[order], min(step.cycle_length, len(order)), block)
    rounds = _rounds_for(wanted, records[order], start, block)
    count = np.clip((rounds - start) * block, 0, records[order])
    first = (np.cumsum(records) - records)[order]
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    visit = np.repeat(start, count) + within // block
    turns = _stable_order(visit * step.cycle_length + np.repeat(slot, count))
    taken: IntArray = (np.repeat(first, count) + within)[turns][:wanted]
    return taken


def _visits(sizes: IntArray, cycle: int, block: int) -> tuple[IntArray, IntArray]:
    """Return slot and first round of each file."""
    free = [(0, slot) for slot in range(cycle)]
    slots, starts = np.zeros(len(sizes), np.int64), np.zeros(len(sizes), np.int64)
    for index, size in enumerate(sizes.tolist()):
        start, slot = free[0]
        slots[index], starts[index] = slot, start
        heapq.heapreplace(free, (start + size // block + 1, slot))
    return slots, starts


def _rounds_for(wanted: int, sizes: IntArray, start: IntArray, block: int) -> int:
    """Return the smallest number of rounds that give so many records, or all rounds if the data has fewer."""
    low, high = 0, int((start + sizes // block + 1).max(initial=0))
    while low < high:
        middle = (low + high) // 2
        if int(np.clip((middle - start) * block, 0, sizes).sum()) >= wanted:
            high = middle
        else:
            low = middle + 1
    return low


def _sample(records: IntArray, step: SampleFiles, rng: np.random.Generator) -> Stream:
    weights = np.asarray(records if step.weights is None else step.weights, np.float64)
    first = np.cumsum(records) - records

    def take(wanted: int) -> IntArray:
        used = np.zeros(len(records), np.int64)
        parts, missing = [np.empty(0, np.int64)], wanted
        while missing > 0:
            live = np.where((records > 0) & ((used < records) | step.repeats_inside), weights, 0.0)
            if not live.any():
                break
            files = rng.choice(len(records), missing, p=live / live.sum())
            place = used[files] + _occurrence(files)
            used += np.bincount(files, minlength=len(records))
            kept = (place < records[files]) | step.repeats_inside
            parts.append((first[files] + place % np.maximum(records[files], 1))[kept])
            missing -= int(kept.sum())
        return np.concatenate(parts)[:, np.newaxis]

    return take


def _occurrence(values: IntArray) -> IntArray:
    """Count for each value how often it came before, shape (n,)."""
    order = _stable_order(values)
    ordered = values[order]
    is_first = np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(values)]
    begin = np.maximum.accumulate(np.where(is_first, np.arange(len(values)), 0))
    counts = np.empty(len(values), np.int64)
    counts[order] = np.arange(len(values)) - begin
    return counts


def _stable_order(values: IntArray) -> IntArray:
    """Return the stable order of numbers from 0 on, 16 bits at a time: NumPy sorts those several times faster."""
    order = np.argsort((values & 0xFFFF).astype(np.uint16), kind="stable")
    for shift in range(16, int(values.max(initial=0)).bit_length(), 16):
        digit = (values[order] >> shift) & 0xFFFF
        order = order[np.argsort(digit.astype(np.uint16), kind="stable")]
    return order


def _shuffle(upstream: Stream, step: Shuffle, rng: np.random.Generator) -> Stream:
    seed = int(rng.integers(2**63))

    def take(wanted: int) -> IntArray:
        elements = upstream(wanted + step.buffer_size)
        draws = rng if step.reshuffle_each_iteration else np.random.default_rng(seed)
        return elements[shuffle_order(len(elements), step.buffer_size, draws)[:wanted]]

    return take


def shuffle_order(elements: int, buffer_size: int, rng: np.random.Generator) -> IntArray:
    """Return the order in which a shuffle buffer hands out its input: indices, shape (elements,).

    The buffer is a set of places. Each draw empties one at random, and the next element moves in, so that a draw
    gives the element that moved in when its place was drawn the last time.
    """
    buffer_size = min(buffer_size, elements)
    drawn = rng.integers(0, max(1, buffer_size), elements - buffer_size)
    by_place = _stable_order(drawn)
    is_same = np.concatenate(([False], drawn[by_place][1:] == drawn[by_place][:-1]))[: len(drawn)]
    given = drawn.copy()
    again = np.flatnonzero(is_same)
    given[by_place[again]] = buffer_size + by_place[again - 1]
    left = np.arange(buffer_size, dtype=np.int64)
    left[drawn] = buffer_size + np.arange(len(drawn))  # of several moves into a place the last one counts
    return np.concatenate((given, rng.permutation(left)))


def _repeat(upstream: Stream, step: Repeat) -> Stream:
    def take(wanted: int) -> IntArray:
        parts, missing, epochs = [], wanted, 0
        while missing > 0 and epochs != step.count:
            part = upstream(missing)
            parts.append(part)
            missing -= len(part)
            epochs += 1
            if not len(part):
                break
        return np.concatenate(parts) if parts else upstream(0)

    return take


def _cache(upstream: Stream) -> Stream:
    kept: list[IntArray] = []

    def take(wanted: int) -> IntArray:
        if not kept:
            first = upstream(wanted)
            if len(first) == wanted:
                return first  # an iteration that did not come to its end is not kept
            kept.append(first)
        return kept[0][:wanted]

    return take


def _batch(upstream: Stream, step: Batch) -> Stream:
    def take(wanted: int) -> IntArray:
        elements = upstream(wanted * step.size)
        whole, rest = divmod(len(elements), step.size)
        if rest and not step.drop_remainder:
            filler = np.full((step.size - rest, elements.shape[1]), NOTHING, np.int64)
            elements, whole = np.concatenate((elements, filler)), whole + 1
        return elements[: whole * step.size].reshape(whole, step.size * elements.shape[1])

    return take
