"""How far a sample of files is from an even one, and how far chance alone would take it.

An even sample comes from perfectly shuffled epochs: whole epochs hold every record once, and what is left over is
drawn without replacement. Its numbers are simulated for the size of the sample, because a small sample is never even.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

DRAWS = 200
_LARGEST_URN = 10**9  # numpy's limit for drawing without replacement
_LARGEST_DRAW = 400_000
"""Numbers drawn in all; with many files fewer samples do, because each one averages over all files."""


def total_variation(counts: IntArray, shares: FloatArray) -> float:
    """Return half the sum of absolute differences between observed and expected shares, 0 to 1.

    It is the share of the samples that are more than their file's share.

    Args:
        counts: Samples per file, shape (files,), not all 0.
        shares: Expected shares, shape (files,), sum 1.
    """
    return float(0.5 * np.abs(counts / counts.sum() - shares).sum())


def chi_square_per_df(counts: IntArray, shares: FloatArray) -> float | None:
    """Return Pearson's statistic over its degrees of freedom: about 1 for independent draws, less for whole epochs.

    Args:
        counts: Samples per file, shape (files,), not all 0.
        shares: Expected shares, shape (files,), sum 1.

    Returns:
        None if fewer than two files have a share.
    """
    known = shares > 0
    if known.sum() < 2:
        return None
    expected = counts.sum() * shares[known]
    return float(((counts[known] - expected) ** 2 / expected).sum() / (known.sum() - 1))


def even_counts(records: IntArray, samples: int, *, draws: int = DRAWS, seed: int = 0) -> IntArray:
    """Simulate even samples.

    Args:
        records: Records per file, shape (files,).
        samples: Size of the sample.
        draws: Simulated samples; fewer where the files are many.
        seed: Of the simulation, so that the answer is the same each time.

    Returns:
        Samples per file, shape (draws, files).
    """
    draws = max(20, min(draws, _LARGEST_DRAW // len(records)))
    epochs, rest = divmod(samples, int(records.sum()))
    rng = np.random.default_rng(seed)
    if records.sum() < _LARGEST_URN:
        partial = rng.multivariate_hypergeometric(records, rest, size=draws, method="marginals")
    else:
        partial = rng.multinomial(rest, records / records.sum(), size=draws)
    counts: IntArray = partial + epochs * records
    return counts


def even_total_variations(records: IntArray, samples: int, *, draws: int = DRAWS, seed: int = 0) -> FloatArray:
    """Return the total variation of each of several even samples; arguments as for :func:`even_counts`."""
    counts = even_counts(records, samples, draws=draws, seed=seed)
    distances: FloatArray = 0.5 * np.abs(counts / samples - records / records.sum()).sum(axis=1)
    return distances


def share_spread(records: IntArray, samples: int) -> FloatArray:
    """Return the standard deviation of each file's share in an even sample, shape (files,).

    Args:
        records: Records per file, shape (files,).
        samples: Size of the sample.
    """
    total = int(records.sum())
    rest = samples % total
    shares = records / total
    left = (total - rest) / max(1, total - 1)  # drawn without replacement
    spread: FloatArray = np.sqrt(shares * (1 - shares) * rest * left) / samples
    return spread


def repeats_within_epochs(ids: IntArray, epoch: int) -> int:
    """Count samples that were already drawn within the same stretch of ``epoch`` consecutive samples.

    Args:
        ids: Which record each sample was, in order, shape (n,), each at least 0.
        epoch: Length of a stretch, normally the number of records.
    """
    return len(ids) - int(distinct_within_epochs(ids, epoch).sum())


def distinct_within_epochs(ids: IntArray, epoch: int) -> IntArray:
    """Count the different records of each stretch of ``epoch`` consecutive samples, shape (stretches,).

    Args:
        ids: Which record each sample was, in order, shape (n,), each at least 0.
        epoch: Length of a stretch, normally the number of records.
    """
    stretch = np.arange(len(ids)) // epoch
    width = int(ids.max(initial=0)) + 1
    return np.bincount(np.unique(stretch * width + ids) // width, minlength=-(-len(ids) // epoch)).astype(np.int64)


def first_uses(ids: IntArray) -> IntArray:
    """Return at which samples a record came for the first time, ascending, shape (different records,)."""
    _, first = np.unique(ids, return_index=True)
    return np.sort(first).astype(np.int64)
