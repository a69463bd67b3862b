"""How the samples of a run came in over its steps: per file, per label, per epoch, and by how much of the data they covered."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.data_classes import dataclass
from pipeline_lab.statistics.sampling import distinct_within_epochs, even_total_variations, first_uses, total_variation

TIMELINE_TABLE = pa.schema(
    [("file", pa.string()), ("bin", pa.int32()), ("step", pa.float64()), ("samples", pa.int64())]
)
"""Samples per file over the course of the run: at most 60 bins; ``step`` is the bin's middle. No row, no samples."""

COVERAGE_TABLE = pa.schema(
    [
        ("step", pa.int64()),
        ("samples", pa.int64()),  # up to and with this step
        ("records_percent", pa.float64()),  # different records used by then, of all
        ("even_percent", pa.float64()),  # what shuffled epochs would have used by then
        ("files", pa.int64()),  # files that gave an example by then
        ("predicted_percent", pa.float64()),  # records used by then in the order that the options predict, or null
    ]
)
"""How much of the data was used, at up to 120 points of the run."""

EPOCH_TABLE = pa.schema(
    [
        ("epoch", pa.int64()),  # 1, 2, 3, …
        ("samples", pa.int64()),
        ("records", pa.int64()),  # different ones among them
        ("files", pa.int64()),  # that gave at least one
        ("total_variation", pa.float64()),
    ]
)
"""One row per epoch's worth of samples, the first 100 of them; the last one may be short."""

LABEL_TABLE = pa.schema([("label", pa.string()), ("bin", pa.int32()), ("step", pa.float64()), ("samples", pa.int64())])
"""Samples per label over the course of the run, as :data:`TIMELINE_TABLE`."""

MAX_BINS = 60
MAX_POINTS = 120
MAX_EPOCHS = 100


def over_steps(
    names: Sequence[str],
    step: IntArray,
    group: IntArray,
    counts: IntArray | None = None,
    schema: pa.Schema = TIMELINE_TABLE,
) -> pa.Table:
    """Count the samples of each group, file or label, in bins of steps.

    Args:
        names: Of the groups.
        step, group: Of each row, shape (n,), n > 0.
        counts: Samples of each row; 1 if not given.
        schema: :data:`TIMELINE_TABLE` or :data:`LABEL_TABLE`.
    """
    first, after = int(step.min()), int(step.max()) + 1
    bins = min(MAX_BINS, after - first)
    edges = np.linspace(first, after, bins + 1)
    index = np.minimum(np.searchsorted(edges, step, side="right") - 1, bins - 1)
    cells, samples = _count_cells(index * len(names) + group, bins * len(names), counts)
    number, which = np.divmod(cells, len(names))
    columns = {
        schema.names[0]: [names[place] for place in which],
        "bin": number,
        "step": (edges[number] + edges[number + 1] - 1) / 2,
        "samples": samples,
    }
    return tables.build(schema, len(cells), **columns)


def _count_cells(cell: IntArray, cells: int, counts: IntArray | None) -> tuple[IntArray, NDArray[Any]]:
    """Return the cells that have rows, and their samples.

    Args:
        cell: Of each row.
        cells: How many there are.
        counts: As in :func:`over_steps`.
    """
    if cells > len(cell):  # else there is no need to sort
        found, row = np.unique(cell, return_inverse=True)
        return found, np.bincount(row, counts)
    found = np.flatnonzero(np.bincount(cell))
    return found, np.bincount(cell, counts)[found]


def coverage(step: IntArray, file: IntArray, ids: IntArray, total: int) -> pa.Table:
    """Follow how much of the data was used.

    Args:
        step, file, ids: Step, file and identity of each sample, in order, shape (n,), n > 0.
        total: Records in all files.

    Returns:
        Of schema :data:`COVERAGE_TABLE`.
    """
    last_of_step = np.flatnonzero(np.diff(step, append=step[-1] + 1))
    picked = np.unique(np.linspace(0, len(last_of_step) - 1, MAX_POINTS).round().astype(np.int64))
    at = last_of_step[picked]
    return tables.build(
        COVERAGE_TABLE,
        len(at),
        step=step[at],
        samples=at + 1,
        records_percent=100.0 * np.searchsorted(first_uses(ids), at, side="right") / total,
        even_percent=100.0 * np.minimum(at + 1, total) / total,
        files=np.searchsorted(first_uses(file), at, side="right"),
        predicted_percent=None,
    )


def epochs(file: IntArray, ids: IntArray, records: IntArray, examples: int) -> pa.Table:
    """Count per epoch's worth of samples.

    Args:
        file, ids: File and identity of each sample, in order, shape (n,), n > 0.
        records: Records per file, shape (files,).
        examples: In an epoch.

    Returns:
        Of schema :data:`EPOCH_TABLE`.
    """
    file, ids = file[: MAX_EPOCHS * examples], ids[: MAX_EPOCHS * examples]
    starts = range(0, len(file), examples)
    counts = [np.bincount(file[start : start + examples], minlength=len(records)) for start in starts]
    return tables.build(
        EPOCH_TABLE,
        len(counts),
        epoch=np.arange(len(counts)) + 1,
        samples=[int(count.sum()) for count in counts],
        records=distinct_within_epochs(ids, examples),
        files=[int((count > 0).sum()) for count in counts],
        total_variation=[total_variation(count, records / records.sum()) for count in counts],
    )


MAX_LABELS = 1000


@dataclass(frozen=True, eq=False)
class LabelMix:
    """How the labels of the examples are spread over the batches.

    Attributes:
        table: Samples per label over the steps, ``sample_history.LABEL_TABLE``.
        labels: Different labels.
        batch_total_variation: Mean total variation of a batch's labels from those of the whole run, 0 to 1.
        batch_total_variation_ideal: The same for batches that are drawn evenly (simulated).
    """

    table: pa.Table
    labels: int
    batch_total_variation: float
    batch_total_variation_ideal: float


def measure_labels(labels: pa.Table) -> LabelMix | None:
    """Measure how labels are spread; None if the examples have none, or too many to be classes.

    Args:
        labels: Of schema ``runs.run_tables.LABELS``.
    """
    step, label, examples = (tables.ints(labels, name) for name in ("step", "label", "examples"))
    values, group = np.unique(label, return_inverse=True)
    if not 0 < len(values) <= MAX_LABELS:
        return None
    overall = np.bincount(group, examples).astype(np.int64)
    _, batch = np.unique(step, return_inverse=True)
    size = np.bincount(batch, examples)
    expected = (overall / overall.sum())[group]
    present = np.bincount(batch, np.abs(examples / size[batch] - expected))
    variation = 0.5 * (present + 1.0 - np.bincount(batch, expected))  # what a batch has none of is missing as a whole
    return LabelMix(
        table=over_steps([str(value) for value in values], step, group, examples, LABEL_TABLE),
        labels=len(values),
        batch_total_variation=float(variation.mean()),
        batch_total_variation_ideal=float(even_total_variations(overall, int(np.median(size))).mean()),
    )
