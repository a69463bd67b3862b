"""How well the examples of a run are mixed: inside a batch, over the run, and against the order of the data."""

import numpy as np

from pipeline_lab.data_classes import dataclass
from pipeline_lab.statistics.sampling import FloatArray, IntArray, even_counts, even_total_variations

TENTHS = 10
MIN_TENTH = 30
"""Samples that a tenth of the run must hold to be judged."""

IDEAL_BATCHES = 400
_LARGEST_PERMUTATION = 2_000_000


@dataclass(frozen=True)
class Mixing:
    """Numbers that tell a well shuffled order from a poor one; None where the run is too short to say.

    Attributes:
        batch_entropy: Mean entropy of the files inside one batch, bits.
        batch_total_variation: Mean total variation of one batch from the files' shares, 0 to 1.
        batch_chi_square_per_df: Mean of Pearson's statistic of a batch over its degrees of freedom; None for one file.
        worst_tenth: Largest total variation of ten consecutive tenths of the run.
        drift: Total variation between the first and the second half of the run.
        same_file_neighbours: Share of neighbors, one sample and the next, that come from the same file.
        order_correlation: Correlation of a sample's place in the epoch and its record's place in the data, -1 to 1.
        displacement: Mean distance of these two places over that of a random order; 0 in stored order, 1 in a random one.
        jump: Mean distance in the data from one sample to the next over that of a random order.
    """

    batch_entropy: float
    batch_total_variation: float
    batch_chi_square_per_df: float | None
    worst_tenth: float | None
    drift: float | None
    same_file_neighbours: float | None
    order_correlation: float | None
    displacement: float
    jump: float | None


def measure_mixing(batch: IntArray, file: IntArray, record: IntArray, records: IntArray) -> Mixing:
    """Measure an order of records.

    Args:
        batch: Batch of each sample, shape (n,), n > 0.
        file, record: File of each sample and its place inside the file, shape (n,).
        records: Records per file, shape (files,).
    """
    shares = records / records.sum()
    entropy, variation, chi_square = batch_numbers(batch, file, shares)
    number = (np.cumsum(records) - records)[file] + record
    correlation, displacement = _against_stored_order(number, int(records.sum()))
    several = len(file) > 1
    return Mixing(
        batch_entropy=float(entropy.mean()),
        batch_total_variation=float(variation.mean()),
        batch_chi_square_per_df=None if chi_square is None else float(chi_square.mean()),
        worst_tenth=_worst_tenth(file, shares),
        drift=_drift(file, len(records)),
        same_file_neighbours=float((file[1:] == file[:-1]).mean()) if several else None,
        order_correlation=correlation,
        displacement=displacement,
        jump=float(np.abs(np.diff(number)).mean() / (records.sum() / 3)) if several else None,
    )


def ideal_mixing(batch_size: int, samples: int, records: IntArray, *, seed: int = 0) -> Mixing:
    """Return the mean of :class:`Mixing` over perfectly shuffled epochs (simulated where no formula is exact).

    Args:
        batch_size: Examples per batch.
        samples: Size of the sample.
        records: Records per file, shape (files,).
        seed: Of the simulation.
    """
    rng = np.random.default_rng(seed)
    total = int(records.sum())
    number = _shuffled_epochs(total, IDEAL_BATCHES * batch_size, rng)
    file = np.searchsorted(np.cumsum(records), number, side="right").astype(np.int64)
    batch = np.arange(len(file)) // batch_size
    entropy, variation, chi_square = batch_numbers(batch, file, records / total)
    together = float((records * (records - 1.0)).sum() / (total * (total - 1.0))) if total > 1 else None
    return Mixing(
        batch_entropy=float(entropy.mean()),
        batch_total_variation=float(variation.mean()),
        batch_chi_square_per_df=None if chi_square is None else float(chi_square.mean()),
        worst_tenth=_ideal_worst_tenth(records, samples),
        drift=_ideal_drift(records, samples),
        same_file_neighbours=together,
        order_correlation=0.0,
        displacement=1.0,
        jump=1.0,
    )


def batch_numbers(
    batch: IntArray, group: IntArray, shares: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return entropy (bits), total variation and χ² per degree of freedom of each batch.

    Args:
        batch: Batch of each sample, shape (n,), n > 0.
        group: What is counted, the file of each sample or its label, shape (n,).
        shares: Expected shares of the groups, sum 1.

    Returns:
        Three arrays of shape (batches,); the last one is None if there is one group only.
    """
    keys, counts = np.unique(batch * len(shares) + group, return_counts=True)
    _, row = np.unique(keys // len(shares), return_inverse=True)
    expected = shares[keys % len(shares)]
    size = np.bincount(row, counts)
    observed = counts / size[row]
    entropy: FloatArray = np.bincount(row, -observed * np.log2(observed)).astype(np.float64)
    absent = 1 - np.bincount(row, expected)
    variation: FloatArray = 0.5 * (np.bincount(row, np.abs(observed - expected)).astype(np.float64) + absent)
    freedom = int((shares > 0).sum()) - 1
    if freedom < 1 or (expected == 0).any():
        return entropy, variation, None
    return entropy, variation, (np.bincount(row, counts**2 / expected) / size - size) / freedom


def _worst_tenth(file: IntArray, shares: FloatArray) -> float | None:
    if len(file) < TENTHS * MIN_TENTH:
        return None
    tenths = np.arange(len(file)) * TENTHS // len(file)
    return float(batch_numbers(tenths, file, shares)[1].max())


def _ideal_worst_tenth(records: IntArray, samples: int) -> float | None:
    if samples < TENTHS * MIN_TENTH:
        return None
    distances = even_total_variations(records, samples // TENTHS)
    return float(distances[: len(distances) // TENTHS * TENTHS].reshape(-1, TENTHS).max(axis=1).mean())


def _drift(file: IntArray, files: int) -> float | None:
    half = len(file) // 2
    if half < MIN_TENTH:
        return None
    first, second = np.bincount(file[:half], minlength=files), np.bincount(file[half:], minlength=files)
    return float(0.5 * np.abs(first / half - second / (len(file) - half)).sum())


def _ideal_drift(records: IntArray, samples: int) -> float | None:
    half = samples // 2
    if half < MIN_TENTH:
        return None
    first, second = even_counts(records, half, seed=1), even_counts(records, half, seed=2)
    return float(0.5 * np.abs(first - second).sum(axis=1).mean() / half)


def _against_stored_order(number: IntArray, total: int) -> tuple[float | None, float]:
    """Return correlation and displacement of the records' places, epoch by epoch, against the place in the epoch."""
    place = np.arange(len(number)) % total
    last = len(number) % total
    random = total / 3 * (len(number) - last) + last * (total / 2 - last / 2 + last**2 / (3 * total))
    displacement = float(np.abs(place - number).sum() / random)
    if place.std() == 0 or number.std() == 0:
        return None, displacement
    return float(np.corrcoef(place, number)[0, 1]), displacement


def _shuffled_epochs(total: int, samples: int, rng: "np.random.Generator") -> IntArray:
    if total > _LARGEST_PERMUTATION:
        return rng.integers(0, total, samples)  # repeats are too rare to show
    epochs = [rng.permutation(total) for _ in range(-(-samples // total))]
    return np.concatenate(epochs)[:samples].astype(np.int64)


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
