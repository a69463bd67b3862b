"""Streams of records: how files are read in turns, sampled, shuffled, repeated, batched and filtered, on plain numbers."""

import heapq
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pipeline_lab.statistics.reading_steps import (
        Batch,
        Bucket,
        Filter,
        RandomShard,
        ReadFiles,
        Repeat,
        SampleFiles,
        Shuffle,
        Unbatch,
        Views,
    )

IntArray = NDArray[np.int64]

Stream: TypeAlias = Callable[[int], IntArray]
"""Starts an iteration and returns at most that many of its first elements, shape (elements, records in each).

A record is its number in the data, files laid one after another; -1 fills up a last batch that is not full.
"""

NOTHING = -1


def read(records: IntArray, step: "ReadFiles", rng: "np.random.Generator") -> Stream:
    def take(wanted: int) -> IntArray:
        order = np.arange(step.shard_index, len(records), step.num_shards)
        if step.shuffle_files:
            order = rng.permutation(order)
        return interleave(records, order, step, wanted)[:, np.newaxis]

    return take


def interleave(records: IntArray, order: IntArray, step: "ReadFiles", wanted: int) -> IntArray:
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
    """Return the smallest number of rounds that give the wanted records, or all rounds if the data has fewer."""
    low, high = 0, int((start + sizes // block + 1).max(initial=0))
    while low < high:
        middle = (low + high) // 2
        if int(np.clip((middle - start) * block, 0, sizes).sum()) >= wanted:
            high = middle
        else:
            low = middle + 1
    return low


def sample(records: IntArray, step: "SampleFiles", rng: "np.random.Generator") -> Stream:
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


def shuffle(upstream: Stream, step: "Shuffle", rng: "np.random.Generator") -> Stream:
    seed = int(rng.integers(2**63))

    def take(wanted: int) -> IntArray:
        elements = upstream(wanted + step.buffer_size)
        draws = rng if step.reshuffle_each_iteration else np.random.default_rng(seed)
        return elements[shuffle_order(len(elements), step.buffer_size, draws)[:wanted]]

    return take


def shuffle_order(elements: int, buffer_size: int, rng: "np.random.Generator") -> IntArray:
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


def repeat(upstream: Stream, step: "Repeat") -> Stream:
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


def batch(upstream: Stream, step: "Batch") -> Stream:
    def take(wanted: int) -> IntArray:
        elements = upstream(wanted * step.size)
        whole, rest = divmod(len(elements), step.size)
        if rest and not step.drop_remainder:
            filler = np.full((step.size - rest, elements.shape[1]), NOTHING, np.int64)
            elements, whole = np.concatenate((elements, filler)), whole + 1
        return elements[: whole * step.size].reshape(whole, step.size * elements.shape[1])

    return take


def bucket(upstream: Stream, step: "Bucket") -> Stream:
    def take(wanted: int) -> IntArray:
        asked = wanted * max(step.sizes) + sum(size - 1 for size in step.sizes)
        elements = upstream(asked)[:, 0]
        bucket_of = step.of_record[elements]
        whole, rest = [], []
        for number, size in enumerate(step.sizes):
            places = np.flatnonzero(bucket_of == number)
            last = len(places) // size * size
            whole += list(places[:last].reshape(-1, size))
            rest += [places[last:]] if last < len(places) else []
        whole.sort(key=lambda places: int(places[-1]))  # a batch comes with the element that fills it
        is_over = len(elements) < asked
        batches = [*whole, *(rest if is_over and not step.drop_remainder else [])][:wanted]
        joined = np.full((len(batches), max(step.sizes)), NOTHING, np.int64)
        for row, places in zip(joined, batches, strict=True):
            row[: len(places)] = elements[places]
        return joined

    return take


def unbatch(upstream: Stream, step: "Unbatch") -> Stream:
    def apart(elements: IntArray) -> IntArray:
        flat = elements.reshape(-1, 1)
        examples: IntArray = flat[flat[:, 0] != NOTHING]
        return examples

    return lambda wanted: _enough(upstream, wanted, -(-wanted // step.size), apart)


def views(upstream: Stream, step: "Views") -> Stream:
    def take(wanted: int) -> IntArray:
        elements = upstream(-(-wanted // step.count))
        numbered: IntArray = (elements * step.count + np.arange(step.count)).reshape(-1, 1)
        return numbered[:wanted]

    return take


def filter_(upstream: Stream, step: "Filter", rng: "np.random.Generator") -> Stream:
    def kept(elements: IntArray) -> IntArray:
        drawn: IntArray = elements[rng.random(len(elements)) < step.share]
        return drawn

    return lambda wanted: _enough(upstream, wanted, int(wanted / step.share) + 1, kept)


def _enough(upstream: Stream, wanted: int, asked: int, change: Callable[[IntArray], IntArray]) -> IntArray:
    """Ask for more and more until the wanted elements are left after a change, or nothing more comes."""
    while True:
        elements = upstream(asked)
        changed = change(elements)
        if len(changed) >= wanted or len(elements) < asked:
            return changed[:wanted]
        asked += max(asked // 4, 16)


def random_shard(upstream: Stream, step: "RandomShard", rng: "np.random.Generator") -> Stream:
    def take(wanted: int) -> IntArray:
        parts, missing = [upstream(0)], wanted
        for shard in rng.permutation(step.num_shards).tolist():
            if missing <= 0:
                break
            begin = shard * step.shard_size
            parts.append(upstream(begin + min(step.shard_size, missing))[begin:])
            missing -= len(parts[-1])
        return np.concatenate(parts)

    return take
