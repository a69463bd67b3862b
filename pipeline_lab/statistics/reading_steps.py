"""The steps of a reading order: stages of a pipeline that change which records come, or when."""

from dataclasses import dataclass
from typing import TypeAlias

from pipeline_lab.statistics.record_stream import IntArray


@dataclass(frozen=True)
class ReadFiles:
    """Read files in turns, as ``interleave`` does; a cycle of 1 reads one file after the other."""

    cycle_length: int = 1
    block_length: int = 1
    shuffle_files: bool = False
    num_shards: int = 1
    shard_index: int = 0


@dataclass(frozen=True)
class SampleFiles:
    """Draw the file of each record at random, as ``sample_from_datasets`` does; files that are over are left out.

    Attributes:
        weights: One per file; None weighs each file by its records.
        repeats_inside: Each file starts over on its own when it is over.
    """

    weights: tuple[float, ...] | None = None
    repeats_inside: bool = False


@dataclass(frozen=True)
class Shuffle:
    """Draw each element from a buffer of the next ones."""

    buffer_size: int
    reshuffle_each_iteration: bool = True


@dataclass(frozen=True)
class Repeat:
    """Start over at the end; None for ever."""

    count: int | None = None


@dataclass(frozen=True)
class Cache:
    """Keep the first iteration: what it holds and its order come again in every later one."""


@dataclass(frozen=True)
class Batch:
    """Join consecutive elements."""

    size: int
    drop_remainder: bool = True


@dataclass(frozen=True, eq=False)
class Bucket:
    """Join elements of one bucket, as ``bucket_by_sequence_length`` does: a batch comes when its bucket holds enough.

    Attributes:
        of_record: Bucket of each record, files laid one after another, shape (records,).
        sizes: Elements in a batch of each bucket.
        drop_remainder: What is left in the buckets at the end is thrown away; else it comes bucket by bucket.
    """

    of_record: IntArray
    sizes: tuple[int, ...]
    drop_remainder: bool = False


@dataclass(frozen=True)
class Take:
    """End after that many elements."""

    count: int


@dataclass(frozen=True)
class Skip:
    """Leave out the first elements."""

    count: int


@dataclass(frozen=True)
class Shard:
    """Keep every so many-th element."""

    num_shards: int
    index: int = 0


@dataclass(frozen=True)
class RandomShard:
    """Visit stretches of so many elements in a new random order each iteration."""

    num_shards: int
    shard_size: int


@dataclass(frozen=True)
class Filter:
    """Keep each element with a chance of ``share``, 0 to 1."""

    share: float


@dataclass(frozen=True)
class Unbatch:
    """Take batches of ``size`` apart."""

    size: int


@dataclass(frozen=True)
class Views:
    """Make several examples of each, one behind the other; they are numbered through, as if each were a record."""

    count: int


Step: TypeAlias = (
    ReadFiles
    | Views
    | SampleFiles
    | Shuffle
    | Repeat
    | Cache
    | Batch
    | Bucket
    | Unbatch
    | Take
    | Skip
    | Shard
    | RandomShard
    | Filter
)
