"""Signed ranks: the robust way to weigh paired differences, so that one disturbed pair cannot carry a verdict.

Wilcoxon's statistic gives each difference its rank by size as weight. Its center is the Hodges–Lehmann estimate, the
median of all pairwise averages (Walsh averages); with normal differences it needs 5 % more pairs than the mean, with
the spikes of a shared machine far fewer.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def signed_ranks(differences: FloatArray) -> FloatArray:
    """Return each difference's rank by size, carrying its sign.

    Args:
        differences: Shape (n,).

    Returns:
        Shape (n,), from -n to n; ties share their mean rank and a difference of zero weighs nothing.
    """
    sizes = np.abs(differences)
    ascending = np.sort(sizes)
    below, up_to = (np.searchsorted(ascending, sizes, side) for side in ("left", "right"))
    ranks: FloatArray = np.sign(differences) * (below + up_to + 1) / 2
    return ranks


def walsh_averages(differences: FloatArray) -> FloatArray:
    """Return the mean of every pair of differences, each with itself included, in ascending order.

    Returns:
        Shape (n (n + 1) / 2,).
    """
    first, second = np.triu_indices(differences.size)
    return np.sort((differences[first] + differences[second]) / 2)


def hodges_lehmann(differences: FloatArray) -> float:
    """Return the center that signed ranks see: the median of the Walsh averages."""
    return float(np.median(walsh_averages(differences)))
