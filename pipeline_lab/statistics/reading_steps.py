"""The steps of a reading order, nothing to do with training steps: what stages do to which records come, and when.

Each step turns a stream of records into another one, as the tf.data stage of that name does. What tf.data decides by its
own seed is drawn from another one, so a simulated order agrees with a real one in distribution, and exactly where nothing
is random. The arithmetic lies in :mod:`pipeline_lab.statistics.streams`, which loads numpy; describing steps does without.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from pipeline_lab.data_classes import dataclass

if TYPE_CHECKING:
    import numpy as np

    from pipeline_lab.statistics.streams import IntArray, Stream


@dataclass(frozen=True)
class Epoch:
    """What the training step is sent of one pass over the data.

    Attributes:
        examples: How many; on average, where chance decides.
        is_drawn: Chance decides how many there are, so that nobody can say where one epoch ends.
    """

    examples: int
    is_drawn: bool = False


class OrderStep(ABC):
    """One step after the reading."""

    @abstractmethod
    def stream(self, upstream: "Stream", rng: "np.random.Generator") -> "Stream":
        """Return what it makes of a stream."""

    @property
    def copies(self) -> int:
        """Examples that become of one record."""
        return 1

    @property
    def is_fixed(self) -> bool:
        """Say whether it hands on the same elements each time."""
        return True

    @property
    def leaves_out(self) -> bool:
        """Say whether some elements never come, each time the same ones."""
        return False


class Reader(OrderStep):
    """The first step."""

    @abstractmethod
    def open(self, records: "IntArray", rng: "np.random.Generator") -> "Stream":
        """Return the records of files, of which the number of records is given, shape (files,)."""

    def stream(self, upstream: "Stream", rng: "np.random.Generator") -> "Stream":
        raise ValueError(f"{type(self).__name__} can only come first")


@dataclass(frozen=True)
class ReadFiles(Reader):
    """Read files in turns, as ``interleave`` does; a cycle of 1 reads one file after the other."""

    cycle_length: int = 1
    block_length: int = 1
    shuffle_files: bool = False
    num_shards: int = 1
    shard_index: int = 0

    @property
    def is_fixed(self) -> bool:
        return not self.shuffle_files

    @property
    def leaves_out(self) -> bool:
        return self.num_shards > 1

    def open(self, records: "IntArray", rng: "np.random.Generator") -> "Stream":
        from pipeline_lab.statistics import streams

        return streams.read(records, self, rng)


@dataclass(frozen=True)
class SampleFiles(Reader):
    """Draw the file of each record at random, as ``sample_from_datasets`` does; files that are over are left out.

    Attributes:
        weights: One per file; None weighs each file by its records.
        repeats_inside: Each file starts over on its own when it is over.
    """

    weights: tuple[float, ...] | None = None
    repeats_inside: bool = False

    @property
    def is_fixed(self) -> bool:
        return False

    def open(self, records: "IntArray", rng: "np.random.Generator") -> "Stream":
        from pipeline_lab.statistics import streams

        return streams.sample(records, self, rng)


@dataclass(frozen=True)
class Shuffle(OrderStep):
    """Draw each element from a buffer of the next ones."""

    buffer_size: int
    reshuffle_each_iteration: bool = True

    @property
    def is_fixed(self) -> bool:
        return not self.reshuffle_each_iteration

    def stream(self, upstream: "Stream", rng: "np.random.Generator") -> "Stream":
        from pipeline_lab.statistics import streams

        return streams.shuffle(upstream, self, rng)


@dataclass(frozen=True)
class Repeat(OrderStep):
    """Start over at the end; None for ever."""

    count: int | None = None

    @property
    def is_fixed(self) -> bool:
        return self.count is not None

    def stream(self, upstream: "Stream", rng: "np.random.Generator") -> "Stream":
        from pipeline_lab.statistics import streams

        return streams.repeat(upstream, self)


@dataclass(frozen=True)
class Cache(OrderStep):
    """Keep the first iteration: what it holds and its order come again in every later one."""

    def stream(self, upstream: "Stream", rng: "np.random.Generator") -> "Stream":
        kept: list[IntArray] = []

        def take(wanted: int) -> "IntArray":
            if not kept:
                first = upstream(wanted)
                if len(first) == wanted:
                    return first  # an iteration that did not come to its end is not kept
                kept.append(first)
            return kept[0][:wanted]

        return take


@dataclass(frozen=True)
class Batch(OrderStep):
    """Join consecutive elements."""

    size: int
    drop_remainder: bool = True

    def stream(self, upstream: "Stream", rng: "np.random.Generator") -> "Stream":
        from pipeline_lab.statistics import streams

        return streams.batch(upstream, self)


@dataclass(frozen=True, eq=False)
class Bucket(OrderStep):
    """Join elements of one bucket, as ``bucket_by_sequence_length`` does: a batch comes when its bucket holds enough.

    Attributes:
        of_record: Bucket of each record, files laid one after another, shape (records,).
        sizes: Elements in a batch of each bucket.
        drop_remainder: What is left in the buckets at the end is thrown away; else it comes bucket by bucket.
    """

    of_record: "IntArray"
    sizes: tuple[int, ...]
    drop_remainder: bool = False

    def stream(self, upstream: "Stream", rng: "np.random.Generator") -> "Stream":
        from pipeline_lab.statistics import streams

        return streams.bucket(upstream, self)


@dataclass(frozen=True)
class Take(OrderStep):
    """End after that many elements."""

    count: int

    @property
    def leaves_out(self) -> bool:
        return True

    def stream(self, upstream: "Stream", rng: "np.random.Generator") -> "Stream":
        return lambda wanted: upstream(min(wanted, self.count))


@dataclass(frozen=True)
class Skip(OrderStep):
    """Leave out the first elements."""

    count: int

    @property
    def leaves_out(self) -> bool:
        return True

    def stream(self, upstream: "Stream", rng: "np.random.Generator") -> "Stream":
        return lambda wanted: upstream(self.count + wanted)[self.count :]


@dataclass(frozen=True)
class Shard(OrderStep):
    """Keep every n-th element."""

    num_shards: int
    index: int = 0

    @property
    def leaves_out(self) -> bool:
        return True

    def stream(self, upstream: "Stream", rng: "np.random.Generator") -> "Stream":
        return lambda wanted: upstream(wanted * self.num_shards)[self.index :: self.num_shards]


@dataclass(frozen=True)
class RandomShard(OrderStep):
    """Visit stretches of ``shard_size`` elements in a new random order each iteration."""

    num_shards: int
    shard_size: int

    @property
    def leaves_out(self) -> bool:
        return True

    def stream(self, upstream: "Stream", rng: "np.random.Generator") -> "Stream":
        from pipeline_lab.statistics import streams

        return streams.random_shard(upstream, self, rng)


@dataclass(frozen=True)
class Filter(OrderStep):
    """Keep each element with a chance of ``share``, 0 to 1."""

    share: float

    @property
    def is_fixed(self) -> bool:
        return False

    def stream(self, upstream: "Stream", rng: "np.random.Generator") -> "Stream":
        from pipeline_lab.statistics import streams

        return streams.filter_(upstream, self, rng)


@dataclass(frozen=True)
class Unbatch(OrderStep):
    """Take batches of ``size`` apart."""

    size: int

    def stream(self, upstream: "Stream", rng: "np.random.Generator") -> "Stream":
        from pipeline_lab.statistics import streams

        return streams.unbatch(upstream, self)


@dataclass(frozen=True)
class Views(OrderStep):
    """Make several examples of each, one after the other; they are numbered through, as if each were a record."""

    count: int

    @property
    def copies(self) -> int:
        return self.count

    def stream(self, upstream: "Stream", rng: "np.random.Generator") -> "Stream":
        from pipeline_lab.statistics import streams

        return streams.views(upstream, self)
