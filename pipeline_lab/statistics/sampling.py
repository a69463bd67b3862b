"""How far a sample of files is from an even one, and how far chance alone would take it."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_LARGEST_URN = 10**9  # numpy's limit for drawing without replacement


def total_variation(counts: IntArray, shares: FloatArray) -> float:
    """Return half the sum of absolute differences between observed and expected shares, 0 to 1.

    It is the share of the samples that would have to come from another file.

    Args:
        counts: Samples per file, shape (files,), not all 0.
        shares: Expected shares, shape (files,), sum 1.
    """
    return float(0.5 * np.abs(counts / counts.sum() - shares).sum())


def ideal_total_variation(records: IntArray, samples: int, *, draws: int = 200, seed: int = 0) -> float:
    """Return the mean total variation of perfectly shuffled epochs of the same size (simulated).

    Whole epochs hold every record once; the rest is drawn without replacement.

    Args:
        records: Records per file, shape (files,).
        samples: Size of the sample.
        draws: Simulated samples.
        seed: Of the simulation, so that the answer is the same each time.
    """
    epochs, rest = divmod(samples, int(records.sum()))
    rng = np.random.default_rng(seed)
    shares = records / records.sum()
    if records.sum() < _LARGEST_URN:
        partial = rng.multivariate_hypergeometric(records, rest, size=draws, method="marginals")
    else:
        partial = rng.multinomial(rest, shares, size=draws)
    counts = partial + epochs * records
    return float(0.5 * np.abs(counts / samples - shares).sum(axis=1).mean())


def repeats_within_epochs(ids: IntArray, epoch: int) -> int:
    """Count samples that were already drawn within the same stretch of ``epoch`` consecutive samples.

    Args:
        ids: Which record each sample was, in order, shape (n,), each at least 0.
        epoch: Length of a stretch, normally the number of records.
    """
    stretch = np.arange(len(ids)) // epoch
    keys = stretch * (ids.max(initial=0) + 1) + ids
    return len(keys) - len(np.unique(keys))


def mean_batch_entropy(batch: IntArray, file: IntArray) -> float:
    """Return how mixed the files are inside one batch: the mean over batches of the entropy of their files, bits.

    Args:
        batch: Batch of each sample, shape (n,), n > 0.
        file: File of each sample, shape (n,).
    """
    pairs, counts = np.unique(np.stack((batch, file)), axis=1, return_counts=True)
    _, row, sizes = np.unique(pairs[0], return_inverse=True, return_counts=True)
    totals = np.bincount(row, counts)
    shares = counts / totals[row]
    return float(np.bincount(row, -shares * np.log2(shares), minlength=len(sizes)).mean())
