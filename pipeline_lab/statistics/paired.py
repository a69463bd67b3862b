"""What a fixed number of paired blocks says about candidate over baseline.

For data that were complete before anyone looked. A race that may stop early needs
:mod:`pipeline_lab.statistics.sequential` instead.
"""

import numpy as np

from pipeline_lab.data_classes import dataclass
from pipeline_lab.statistics.signed_ranks import FloatArray

POWER = 0.8
MOST_EXACT_PAIRS = 14
RANDOM_FLIPS = 20_000


@dataclass(frozen=True)
class PairedRatio:
    """Candidate over baseline from paired blocks.

    Attributes:
        pairs: Pairs that entered.
        ratio: Geometric mean of candidate time over baseline time.
        low, high: Ends of its confidence interval (paired t on log ratios).
        p_value: Sign-flip test of "the arms do not differ".
        smallest_effect: The ratio above 1 that would be found with a probability of 80 % at this noise.
    """

    pairs: int
    ratio: float
    low: float
    high: float
    p_value: float
    smallest_effect: float


def log_ratios(baseline_ns: FloatArray, candidate_ns: FloatArray) -> FloatArray:
    """Return the log of candidate time over baseline time for each pair, shape (n,).

    Raises:
        ValueError: The arms differ in length, or a time is not positive.
    """
    baseline, candidate = np.asarray(baseline_ns, dtype=np.float64), np.asarray(candidate_ns, dtype=np.float64)
    if baseline.shape != candidate.shape or not (np.all(baseline > 0) and np.all(candidate > 0)):
        raise ValueError("Pairs need one positive time per arm.")
    ratios: FloatArray = np.log(candidate / baseline)
    return ratios


def paired_ratio(log_ratios: FloatArray, confidence: float = 0.95) -> PairedRatio:
    """Estimate the ratio of two arms from all their pairs.

    Args:
        log_ratios: Log of candidate time over baseline time for each pair, shape (n,), at least two.
        confidence: Of the interval, 0 to 1.
    """
    count = log_ratios.size
    if count < 2:
        raise ValueError(f"A paired ratio needs at least two pairs, got {count}.")
    from scipy.special import stdtrit  # only intervals need it

    mean, error = float(log_ratios.mean()), float(log_ratios.std(ddof=1)) / count**0.5
    half = float(stdtrit(count - 1, 0.5 + confidence / 2)) * error
    low, center, high = np.exp([mean - half, mean, mean + half])
    return PairedRatio(
        pairs=count,
        ratio=float(center),
        low=float(low),
        high=float(high),
        p_value=sign_flip_p(log_ratios),
        smallest_effect=smallest_effect(half, count, confidence),
    )


def sign_flip_p(differences: FloatArray, seed: int = 0) -> float:
    """Return how often random signs give a mean at least as far from 0 as the one observed.

    Exact up to 14 pairs; beyond, 20,000 random sequences of signs stand for all, the observed one among them.
    """
    count = differences.size
    if count <= MOST_EXACT_PAIRS:
        signs = 1.0 - 2.0 * ((np.arange(2**count)[:, None] >> np.arange(count)) & 1)
    else:
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], (RANDOM_FLIPS, count))
        signs[0] = 1.0
    sums = np.abs(signs @ differences)
    tolerance = 1e-9 * np.abs(differences).sum()
    return float(np.mean(sums >= sums[0] - tolerance))


def smallest_effect(half_width: float, pairs: int, confidence: float = 0.95, power: float = POWER) -> float:
    """Return the ratio above 1 that would be found with the given probability.

    Args:
        half_width: Half the interval of the log ratio.
        pairs: Pairs behind it, at least two.
        confidence, power: Of the interval, and of finding the effect, 0 to 1.
    """
    from scipy.special import stdtrit

    found, excluded = (float(stdtrit(pairs - 1, level)) for level in (power, 0.5 + confidence / 2))
    return float(np.exp(half_width * (1 + found / excluded)))
