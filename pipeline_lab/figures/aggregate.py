"""Columns as plain arrays, and neighbours joined so that no chart draws more than a screen can show."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def column(table: pa.Table, name: str, unit: float = 1.0) -> FloatArray:
    """Return a numeric column divided by ``unit``, shape (rows,); null becomes NaN."""
    return np.asarray(table.column(name).to_numpy(), np.float64) / unit


def group_starts(count: int, cap: int) -> IntArray:
    """Split ``count`` neighbours into at most ``cap`` groups of equal size (the last may be smaller).

    Returns:
        Index of each group's first member, shape (groups,).
    """
    size = max(1, -(-count // cap))
    return np.arange(0, count, size, dtype=np.int64)


def group_size(starts: IntArray) -> int:
    """Return how many neighbours :func:`group_starts` put into one group."""
    return int(starts[1] - starts[0]) if len(starts) > 1 else 1


def group_mean(values: FloatArray, starts: IntArray) -> FloatArray:
    """Return the mean of each group, shape (groups,)."""
    return np.array([part.mean() for part in _groups(values, starts)], np.float64)


def group_percentile(values: FloatArray, starts: IntArray, percent: float) -> FloatArray:
    """Return a percentile of each group, NaN ignored, shape (groups,); NaN where a group holds nothing else."""
    found = (part[~np.isnan(part)] for part in _groups(values, starts))
    return np.array([np.percentile(part, percent) if len(part) else np.nan for part in found], np.float64)


def break_between(x: FloatArray, y: FloatArray, parts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Put a gap into a line wherever its points begin to belong to another part, such as another profile window."""
    places = np.flatnonzero(np.diff(parts)) + 1
    return np.insert(x, places, np.nan), np.insert(y, places, np.nan)


def _groups(values: FloatArray, starts: IntArray) -> list[FloatArray]:
    return np.split(values, starts[1:]) if len(starts) else []
