"""Waits of steps inside graphs: from request to request, less the time that tf.data saw between two."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.capture.script.step_notes import Gaps

IntArray = NDArray[np.int64]


class FittedWaits(NamedTuple):
    """Waits of the steps that tf.data's times cover, by their places, and by how much these cannot be theirs."""

    places: IntArray
    wait_ns: IntArray
    misfit_ns: int


def fit_waits(times: IntArray, gaps: Gaps) -> FittedWaits:
    """Return the waits of steps; whether a request is under way, so one more time is over, shows by what fits better.

    Args:
        times: Start, start of the next one, length, batches and last element of each step, shape (5, n).
        gaps: What tf.data saw.
    """
    fits = [_waits(times, gaps, last) for last in (gaps.elements - 1, gaps.elements)]
    known = len(gaps.between_ns)
    if known in (gaps.elements - 1, gaps.elements):
        return fits[known - (gaps.elements - 1)]
    return min(fits, key=lambda fit: fit.misfit_ns)


def _waits(times: IntArray, gaps: Gaps, last: int) -> FittedWaits:
    """Return the waits of steps; ``last`` is the element before tf.data's last time."""
    start, following, length, count, element = times
    sums = np.concatenate(([0], np.cumsum(np.asarray(gaps.between_ns, np.int64))))
    high = element - (last - len(gaps.between_ns) + 1)
    low = high - count + 1
    places = np.flatnonzero((low >= 0) & (high < len(gaps.between_ns)))
    wait = (following - start)[places] - (sums[high[places] + 1] - sums[low[places]])
    return FittedWaits(places, wait, int(np.maximum(np.maximum(-wait, wait - length[places]), 0).sum()))
