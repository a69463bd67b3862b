"""Columns as plain arrays, and neighbors joined so that no chart draws more than a screen can show."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def column(table: pa.Table, name: str, unit: float = 1.0) -> FloatArray:
    """Return a numeric column divided by ``unit``, shape (rows,); null becomes NaN."""
    return np.asarray(table.column(name).to_numpy(), np.float64) / unit


def group_starts(count: int, cap: int) -> IntArray:
    """Split ``count`` neighbors into at most ``cap`` groups of equal size (the last may be smaller).

    Returns:
        Index of each group's first member, shape (groups,).
    """
    size = max(1, -(-count // cap))
    return np.arange(0, count, size, dtype=np.int64)


def group_size(starts: IntArray) -> int:
    """Return how many neighbors :func:`group_starts` put into one group."""
    return int(starts[1] - starts[0]) if len(starts) > 1 else 1


def group_mean(values: FloatArray, starts: IntArray) -> FloatArray:
    """Return the mean of each group, shape (groups,)."""
    return np.array([part.mean() for part in _groups(values, starts)], np.float64)


def group_percentile(values: FloatArray, starts: IntArray, percent: float) -> FloatArray:
    """Return a percentile of each group, NaN ignored, shape (groups,); NaN where a group holds nothing else.

    Args:
        values: All members, shape (n,).
        starts: Of :func:`group_starts` for as many, so that all groups but the last are of one size.
        percent: 0 to 100.
    """
    size = group_size(starts) if len(starts) > 1 else max(1, len(values))
    whole = values[: len(values) // size * size].reshape(-1, size)
    complete = np.flatnonzero(~np.isnan(whole).any(axis=1))
    found = np.full(len(starts), np.nan)
    if len(complete):  # all at once, for a call of its own takes longer than a group
        found[complete] = np.percentile(whole[complete], percent, axis=1)
    for group in np.setdiff1d(np.arange(len(starts)), complete):
        part = values[group * size : (group + 1) * size]
        if len(known := part[~np.isnan(part)]):
            found[group] = np.percentile(known, percent)
    return found


def break_between(x: FloatArray, y: FloatArray, parts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Put a gap into a line wherever its points begin to belong to another part, such as another profile window."""
    places = np.flatnonzero(np.diff(parts)) + 1
    return np.insert(x, places, np.nan), np.insert(y, places, np.nan)


def outline(
    x: FloatArray, low: FloatArray, high: FloatArray, parts: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Return a line around a band, a closed one for each part, with gaps between them: a fill between two lines runs across gaps."""
    around_x, around_y = [np.empty(0)], [np.empty(0)]
    places = () if parts is None else np.flatnonzero(np.diff(parts)) + 1
    for at in np.split(np.arange(len(x)), places):
        around_x += [x[at], x[at][::-1], np.array([np.nan])]
        around_y += [high[at], low[at][::-1], np.array([np.nan])]
    return np.concatenate(around_x)[:-1], np.concatenate(around_y)[:-1]


def _groups(values: FloatArray, starts: IntArray) -> list[FloatArray]:
    return np.split(values, starts[1:]) if len(starts) else []
