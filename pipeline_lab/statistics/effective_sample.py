"""How much a correlated series knows about its own mean.

Neighboring step times resemble each other: 300 steps on a shared machine may say as much as two independent ones.
The integrated autocorrelation time (Geyer's initial positive sequence) says how many neighbors count as one; batch
means guard against correlation that is longer than the series can show. The larger error of the two is kept.
"""

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.data_classes import dataclass

FloatArray = NDArray[np.float64]

BATCHES = 10
VALUES_PER_DEGREE = 4.0
MAX_ERROR_SHARE = 0.9
"""The mean's squared error over the variance of one value is held below this; it corrects for the drift that the
series' own mean has taken up."""
MIN_EFFECTIVE = 5.0
"""With fewer independent values than this an interval would promise what the series cannot hold."""


@dataclass(frozen=True)
class MeanEstimate:
    """The mean of a correlated series.

    Attributes:
        mean: Of all values.
        standard_error: Of the mean, correlation included.
        effective_count: How many independent values would know as much.
    """

    mean: float
    standard_error: float
    effective_count: float

    @property
    def is_enough(self) -> bool:
        return self.effective_count >= MIN_EFFECTIVE


def autocorrelation_time(values: FloatArray) -> float:
    """Return how many neighboring values count as one independent one, at least 1.

    Args:
        values: Equally spaced series, shape (n,).
    """
    count = len(values)
    if count < 4 or values.min() == values.max():
        return 1.0
    spectrum = np.abs(np.fft.rfft(values - values.mean(), 2 * count)) ** 2
    covariance = np.fft.irfft(spectrum)[:count]
    correlation = covariance / covariance[0]
    pairs = correlation[: count // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    return max(1.0, 2.0 * float(pairs[: negative[0] if len(negative) else len(pairs)].sum()) - 1.0)


def estimate_mean(values: FloatArray) -> MeanEstimate:
    """Estimate the mean of a correlated series and its standard error.

    Args:
        values: Equally spaced series, shape (n,), at least two values.
    """
    mean, variance = float(values.mean()), float(values.var(ddof=1))
    if variance == 0:
        return MeanEstimate(mean, 0.0, float(len(values)))
    by_correlation = variance * autocorrelation_time(values) / len(values)
    share = min(MAX_ERROR_SHARE, max(by_correlation, _batch_means_error(values)) / variance)
    squared_error = variance * share / (1.0 - share)
    return MeanEstimate(mean, squared_error**0.5, variance / squared_error)


def difference_interval(first: MeanEstimate, second: MeanEstimate, confidence: float) -> tuple[float, float]:
    """Return the interval of ``second.mean - first.mean``: Welch's, with few degrees of freedom.

    A correlation time that was estimated from the series itself is too short more often than too long. One degree of
    freedom for every four effective values brings simulated coverage near its nominal 95 % as long as the correlation
    time stays below a fifth of the series; slower drift than that cannot be seen from inside one run.
    """
    squares = (first.standard_error**2, second.standard_error**2)
    error = sum(squares) ** 0.5
    center = second.mean - first.mean
    if error == 0:
        return center, center
    freedoms = (max(1.0, each.effective_count / VALUES_PER_DEGREE - 1.0) for each in (first, second))
    from scipy.special import stdtrit  # only intervals need it

    degrees = sum(squares) ** 2 / sum(square**2 / freedom for square, freedom in zip(squares, freedoms, strict=True))
    half = float(stdtrit(degrees, 0.5 + confidence / 2)) * error
    return center - half, center + half


def _batch_means_error(values: FloatArray) -> float:
    """Return the squared error of the mean as the scatter of ten stretches' means shows it, 0 if it is too short."""
    length = len(values) // BATCHES
    if length < 2:
        return 0.0
    means = values[: length * BATCHES].reshape(BATCHES, length).mean(axis=1)
    return float(means.var(ddof=1)) / BATCHES
