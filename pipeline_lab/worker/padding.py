"""How much of a batch is padding, for examples that carry their length."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline_lab.worker.trainer import Batch

PADDED, LENGTH, ELEMENTS = "spectrum", "length", "elements"
"""Entries of a batch: what is padded, the examples' own lengths, and how much the step was sent, where that was counted."""


@dataclass(frozen=True)
class BatchPadding:
    """One batch.

    Attributes:
        examples: In it.
        elements: That the step was sent, padding included.
        padding: Of them.
    """

    examples: int
    elements: int
    padding: int


def count_elements(batch: Batch) -> Batch:
    """Return the batch with the number of elements sent as another entry; as it is, where no example has a length.

    May be traced into a graph.
    """
    if LENGTH not in batch or PADDED not in batch:
        return batch
    padded: Any = batch[PADDED]
    is_ragged = isinstance(padded, tf.RaggedTensor)
    elements = tf.shape(padded.flat_values)[0] if is_ragged else tf.shape(padded)[0] * tf.shape(padded)[1]
    return {**batch, ELEMENTS: elements}


def measure_padding(batch: Batch) -> BatchPadding | None:
    """Compare what a batch holds with the lengths of its examples; None where these are not known."""
    counted = batch if ELEMENTS in batch else count_elements(batch)
    if ELEMENTS not in counted:
        return None
    lengths, elements = np.asarray(counted[LENGTH]), int(np.asarray(counted[ELEMENTS]).sum())
    return BatchPadding(len(lengths), elements, elements - int(lengths.sum()))
