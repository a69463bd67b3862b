"""What the beginning of each pass over the data adds to a step: a buffer of ``shuffle`` that fills, files that are opened.

The blocks of a race are stretches within passes, where none of that shows. So each arm's pipeline is also started again once a
round, and every step carries its share of the wait for the first batch.
"""

import math
import time
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from pipeline_lab.capture.script_race.switching import inside
from pipeline_lab.data_classes import dataclass
from pipeline_lab.units import NS_PER_S

LEAST_SHARE = 0.02
"""Part of a pass that its beginning takes, in any arm, before it is measured in every round."""


@dataclass(frozen=True)
class PassStarts:
    """How the passes of a race begin.

    Attributes:
        batches: Of a pass.
        first_ns: Until the first batch of a pass, of each arm, as seen before the race.
    """

    batches: int
    first_ns: tuple[int, ...]

    def share_ns(self, dataset: Any) -> float:
        """Begin another pass, and return the share of its wait that each of its steps has, ns."""
        return time_start_ns(dataset) / self.batches


def measure_starts(dataset: Any, arms: Sequence[Any], step_s: float, limit_s: float) -> PassStarts | None:
    """Return how passes begin, where that matters; None where it does not, or nobody knows how long a pass is.

    Args:
        dataset: The script's own, as it is.
        arms: Datasets of all arms, which have no end.
        step_s: A step within a pass.
        limit_s: For counting a pass whose length tf.data does not know.
    """
    batches = batches_of_pass(dataset, limit_s)
    if batches is None:
        return None
    first_ns = tuple(map(time_start_ns, arms))
    return PassStarts(batches, first_ns) if max(first_ns) > LEAST_SHARE * batches * step_s * NS_PER_S else None


def time_start_ns(dataset: Any) -> int:
    """Return how long a pipeline that begins takes to its first batch, ns."""
    with inside():
        begun_ns = time.perf_counter_ns()
        next(iter(dataset), None)
        return time.perf_counter_ns() - begun_ns


def batches_of_pass(dataset: Any, limit_s: float) -> int | None:
    """Return how many batches there are until a pipeline, or what is upstream of its last ``repeat``, starts again.

    None where it never does, as after a ``shuffle`` of what repeats for ever, and where counting takes too long.
    """
    size, stage = 1, dataset
    while len(below := stage._inputs()) == 1 and "Shuffle" not in type(stage).__name__:
        if "Repeat" in type(stage).__name__:
            elements = _count(below[0], limit_s)
            return None if elements is None else math.ceil(elements / size)
        if "Batch" in type(stage).__name__:
            size *= int(tf.get_static_value(stage._batch_size) or 1)
        (stage,) = below
    return _count(dataset, limit_s)


def _count(dataset: Any, limit_s: float) -> int | None:
    """Return how many elements a dataset has, by reading it where it does not know; None without an end, or with none at all."""
    known = dataset.cardinality()
    if known != tf.data.UNKNOWN_CARDINALITY:
        return int(known) if known > 0 else None
    deadline_s, count = time.monotonic() + limit_s, 0
    with inside():
        for _ in dataset:
            count += 1
            if time.monotonic() > deadline_s:
                return None
    return count or None
