"""The order in which an input pipeline hands out its records, simulated without reading any of them."""

import math
from collections.abc import Sequence

import numpy as np

from pipeline_lab.data_classes import dataclass
from pipeline_lab.statistics.reading_steps import OrderStep, Reader
from pipeline_lab.statistics.streams import NOTHING, IntArray


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


def simulate(records: IntArray, steps: Sequence[OrderStep], batches: int, *, seed: int = 0) -> ReadingOrder:
    """Return the records of the first batches that a pipeline hands out.

    Args:
        records: Records of each file, shape (files,).
        steps: The stages that change the order, from the reading to the batches.
        batches: How many batches (elements, if nothing is batched) to take; fewer come if the data ends.
        seed: Of everything that is random.
    """
    rng = np.random.default_rng(seed)
    reader, *others = steps
    if not isinstance(reader, Reader):
        raise ValueError(f"a reading order begins with a reading step, not with {type(reader).__name__}")
    stream = reader.open(records, rng)
    for step in others:
        stream = step.stream(stream, rng)
    elements = stream(batches)
    flat = elements.ravel()
    batch = np.repeat(np.arange(len(elements), dtype=np.int64), elements.shape[1])
    kept = flat != NOTHING
    examples = records * count_views(steps)
    file, record = locate(examples, flat[kept])
    return ReadingOrder(batch[kept], file, record, examples)


def count_views(steps: Sequence[OrderStep]) -> int:
    """Return how many examples become of one record."""
    return math.prod(step.copies for step in steps)


def locate(records: IntArray, number: IntArray) -> tuple[IntArray, IntArray]:
    """Return file and place in the file of records that are numbered through all files."""
    first = np.cumsum(records) - records
    if records.sum() <= 4 * len(number):  # a table is quicker where it is not much longer than what is asked
        file = np.repeat(np.arange(len(records), dtype=np.int64), records)[number]
    else:
        file = np.searchsorted(first, number, side="right").astype(np.int64) - 1
    return file, number - first[file]
