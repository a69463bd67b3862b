"""Views of one image inside a batch, measured beside what a perfect shuffle would have."""

from dataclasses import dataclass

import numpy as np

from pipeline_lab.analysis.intervals import IntArray
from pipeline_lab.statistics.same_source import expected_same_source, same_source_examples


@dataclass(frozen=True)
class SameSource:
    """Examples that share their source with another example of their batch.

    Attributes:
        views: Examples that become of one source.
        batch_size: Examples of a batch, the median.
        per_batch: Mean number of them in a batch.
        expected: The same in a perfectly shuffled epoch.
        predicted: The same in the order that the options predict; None where that is not known.
    """

    views: int
    batch_size: int
    per_batch: float
    expected: float
    predicted: float | None = None

    @property
    def is_weak(self) -> bool:
        """Say whether the shuffle leaves far more of them together than chance does."""
        return self.per_batch > 2 * self.expected + 1


def measure(batch: IntArray, number: IntArray, total: int, views: int) -> SameSource | None:
    """Measure how far views are apart; None where each source gives one example.

    Args:
        batch: Batch of each example, shape (n,), n > 0.
        number: Its place in the data, the views of a source one after another, shape (n,).
        total: Examples in the data.
        views: Examples that become of one source.
    """
    if views == 1:
        return None
    batch_size = int(np.median(np.unique(batch, return_counts=True)[1]))
    return SameSource(
        views=views,
        batch_size=batch_size,
        per_batch=float(same_source_examples(batch, number // views).mean()),
        expected=expected_same_source(batch_size, total // views, views),
    )
