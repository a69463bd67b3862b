"""Streams of records of which a part is left out, visited in another order, sorted into batches or taken out of them."""

from collections.abc import Callable

import numpy as np

from pipeline_lab.statistics.reading_steps import Bucket, Filter, RandomShard, Unbatch, Views
from pipeline_lab.statistics.record_stream import NOTHING, IntArray, Stream


def bucket(upstream: Stream, step: Bucket) -> Stream:
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


def unbatch(upstream: Stream, step: Unbatch) -> Stream:
    def apart(elements: IntArray) -> IntArray:
        flat = elements.reshape(-1, 1)
        examples: IntArray = flat[flat[:, 0] != NOTHING]
        return examples

    return lambda wanted: _enough(upstream, wanted, -(-wanted // step.size), apart)


def views(upstream: Stream, step: Views) -> Stream:
    def take(wanted: int) -> IntArray:
        elements = upstream(-(-wanted // step.count))
        numbered: IntArray = (elements * step.count + np.arange(step.count)).reshape(-1, 1)
        return numbered[:wanted]

    return take


def filter_(upstream: Stream, step: Filter, rng: np.random.Generator) -> Stream:
    def kept(elements: IntArray) -> IntArray:
        drawn: IntArray = elements[rng.random(len(elements)) < step.share]
        return drawn

    return lambda wanted: _enough(upstream, wanted, int(wanted / step.share) + 1, kept)


def _enough(upstream: Stream, wanted: int, asked: int, change: Callable[[IntArray], IntArray]) -> IntArray:
    """Ask for more and more until so many are left after a change, or nothing more comes."""
    while True:
        elements = upstream(asked)
        changed = change(elements)
        if len(changed) >= wanted or len(elements) < asked:
            return changed[:wanted]
        asked += max(asked // 4, 16)


def random_shard(upstream: Stream, step: RandomShard, rng: np.random.Generator) -> Stream:
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
