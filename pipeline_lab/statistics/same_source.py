"""How many examples of a batch come from a source, an image say, that gave another example of the same batch."""

import numpy as np

from pipeline_lab.statistics.sampling import FloatArray, IntArray


def same_source_examples(batch: IntArray, source: IntArray) -> FloatArray:
    """Count, for each batch, the examples that share their source with another one of it.

    Args:
        batch: Batch of each example, shape (n,), n > 0.
        source: Number of its source, shape (n,), each at least 0.

    Returns:
        One count per batch, in the order of the batches, shape (batches,).
    """
    width = int(source.max()) + 1
    keys, counts = np.unique(batch * width + source, return_counts=True)
    _, row = np.unique(keys // width, return_inverse=True)
    shared: FloatArray = np.bincount(row, np.where(counts > 1, counts, 0)).astype(np.float64)
    return shared


def expected_same_source(batch_size: int, sources: int, views: int) -> float:
    """Return what :func:`same_source_examples` is on average in a perfectly shuffled epoch.

    The batch is drawn without replacement: an example is alone if none of the other ``views - 1`` is among the
    ``batch_size - 1`` others.

    Args:
        batch_size: Examples of a batch.
        sources: How many sources there are.
        views: Examples that each source gives.
    """
    others = sources * views - 1
    if batch_size > others:
        return float(batch_size) if views > 1 else 0.0
    other_views = np.arange(views - 1)
    left = np.maximum(others - (batch_size - 1) - other_views, 0)
    return float(batch_size * (1 - np.prod(left / (others - other_views))))
