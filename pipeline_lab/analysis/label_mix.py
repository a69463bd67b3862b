"""Which labels the batches held, beside what an even sample of the run's labels would hold."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.sample_history import LABEL_TABLE, over_steps
from pipeline_lab.statistics.sampling import even_total_variations

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


def measure(labels: pa.Table) -> LabelMix | None:
    """Measure how labels are spread; None if the examples have none, or too many to be classes.

    Args:
        labels: Of schema ``runs.tables.LABELS``.
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
