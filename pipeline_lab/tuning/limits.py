"""What a configuration must respect, whatever it would gain: memory, threads, and the quality of the sampling."""

import math
from dataclasses import dataclass

import numpy as np

from pipeline_lab.options.pipeline import PipelineOptions
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.clip_lengths import buckets_of
from pipeline_lab.pipeline.reading_order import order_steps, predict_order
from pipeline_lab.statistics.mixing import Mixing, measure_mixing
from pipeline_lab.statistics.reading_steps import Step
from pipeline_lab.statistics.record_stream import IntArray
from pipeline_lab.statistics.sampling import FloatArray

BATCHES = 60
"""Batches whose mixing is compared; of a smaller data set, two epochs."""
SEEDS = range(8)
SLACK = 0.02
"""Mixing that is worse by no more than this is not worse to train on."""
ERRORS = 2.0
"""Standard errors of the difference, over the seeds, that are no difference either."""


@dataclass(frozen=True)
class Limits:
    """What must be respected.

    Attributes:
        memory_bytes: Buffers and caches may hold this much; None if nobody knows what is free.
        threads: So many may read and map at once; None for any number.
    """

    memory_bytes: int | None = None
    threads: int | None = None

    def refuse(self, memory_bytes: int, threads: int) -> str | None:
        """Return which limit a configuration breaks, in a few words, or None."""
        if self.memory_bytes is not None and memory_bytes > self.memory_bytes:
            return "needs too much memory"
        if self.threads is not None and threads > self.threads:
            return "needs too many threads"
        return None


class Sampling:
    """Says whether the model would see its examples less well mixed than at the start."""

    def __init__(self, start: RunOptions, records: IntArray | None, cores: int) -> None:
        """Look at the start.

        Args:
            start: What nothing may be worse than.
            records: Records of each file, shape (files,); None if they are unknown.
            cores: Of the machine that reads: tf.data chooses by them how many files to open where nobody says.
        """
        self._records, self._cores = records, cores
        self._start_steps = self._steps(start.pipeline)
        self._start = self._mixing(start)
        self._known: dict[tuple[tuple[Step, ...], int], bool] = {}

    def is_worse(self, options: RunOptions) -> bool:
        """Say whether a pipeline mixes worse; one that reads in another order counts as worse where nobody can tell."""
        steps = self._steps(options.pipeline)
        if steps == self._start_steps:
            return False
        key = (steps, options.pipeline.batch_size)
        if key not in self._known:
            self._known[key] = self._compare(options)
        return self._known[key]

    def _compare(self, options: RunOptions) -> bool:
        mixing = self._mixing(options)
        return mixing is None or self._start is None or mixes_worse(self._start, mixing)

    def _steps(self, pipeline: PipelineOptions) -> tuple[Step, ...]:
        return order_steps(pipeline, 0 if self._records is None else len(self._records), self._cores)

    def _mixing(self, options: RunOptions) -> FloatArray | None:
        """Return how badly a pipeline mixes, shape (seeds, numbers); None if it cannot be told.

        Each number is 0 at its best, and NaN where too few examples are read to say.
        """
        if self._records is None:
            return None
        pipeline, buckets = options.pipeline, buckets_of(options)
        total = int(self._records.sum()) * pipeline.views
        batches = max(1, min(BATCHES, 2 * total // pipeline.batch_size))
        orders = [
            predict_order(pipeline, self._records, batches, cores=self._cores, seed=seed, buckets=buckets)
            for seed in SEEDS
        ]
        found = [
            _badness(measure_mixing(each.batch, each.file, each.record, each.records))
            for each in orders
            if each is not None and len(each.batch)
        ]
        return np.array(found) if len(found) == len(SEEDS) else None


def mixes_worse(start: FloatArray, other: FloatArray) -> bool:
    """Say whether one pipeline mixes worse than another by what both allow to be told.

    Args:
        start, other: How badly each mixes, shape (seeds, numbers); NaN where the data are too few to say. What is known of
            one of them only counts as worse.
    """
    known = np.isfinite(start).all(axis=0)
    if (known != np.isfinite(other).all(axis=0)).any():
        return True
    beyond = other[:, known] - start[:, known]
    error = beyond.std(axis=0, ddof=1) / len(beyond) ** 0.5
    return bool(np.any(beyond.mean(axis=0) > SLACK + ERRORS * error))


def _badness(mixing: Mixing) -> list[float]:
    correlation = mixing.order_correlation
    numbers = (
        mixing.batch_total_variation,
        mixing.worst_tenth,
        mixing.drift,
        None if correlation is None else abs(correlation),
        max(0.0, 1.0 - mixing.displacement),
    )
    return [math.nan if number is None else number for number in numbers]
