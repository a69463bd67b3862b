"""Count what ``padded_batch`` added to the batches of a watched script, after its last line: whatever ends a row and is nothing."""

import itertools
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from pipeline_lab.capture.recording import Recording
from pipeline_lab.runs.run_tables import PADDING, TableWriter
from pipeline_lab.worker.recipe.notes import Note, note_of

MOST_BATCHES, MOST_S = 50, 1.0
PADS = frozenset({"padded_batch", "bucket_by_sequence_length"})


class Padded(NamedTuple):
    """Of one batch: examples, the places along its second axis in all of them, and how many of these hold nothing up to the end of their row."""

    examples: int
    elements: int
    padding: int


def note_padding(recording: Recording, dataset: Any) -> None:
    """Write the padding of the first batches of a dataset into the run; nothing where its batches are not padded."""
    if not isinstance(dataset, tf.data.Dataset) or not _pads(note_of(dataset)):
        return
    place = _varying(dataset.element_spec)
    if place is None:
        return
    until_s, writer = time.monotonic() + MOST_S, TableWriter(recording.own.padding, PADDING)
    try:
        for number, batch in enumerate(itertools.islice(dataset, MOST_BATCHES)):
            writer.append(number, *count_padding(np.asarray(tf.nest.flatten(batch)[place])))
            if time.monotonic() > until_s:
                break
    finally:
        writer.close()


def count_padding(batch: NDArray[Any]) -> Padded:
    """Count the padding of a batch.

    Args:
        batch: Numbers or texts, shape (examples, length, …).
    """
    examples, length, *others = batch.shape
    holds = (batch != (b"" if batch.dtype == object else 0)).any(axis=tuple(range(2, 2 + len(others))))
    own = (holds * np.arange(1, length + 1)).max(axis=1, initial=0)
    return Padded(examples, holds.size, int(holds.size - own.sum()))


def _pads(note: Note) -> bool:
    """Say whether batches are padded with what padding is by default; another value nobody can tell from the data."""
    calls = [each for each in _all_of(note) if each.method in PADS]
    return bool(calls) and all(each.arguments.get("padding_values") is None for each in calls)


def _all_of(note: Note) -> Iterator[Note]:
    for each in note.upstream():
        yield each
        for inside in each.made:
            yield from _all_of(inside)


def _varying(spec: Any) -> int | None:
    """Return the place, among the parts of an element, of the first one that is as long as the longest of its examples; None without any."""
    return next(
        (
            place
            for place, part in enumerate(tf.nest.flatten(spec))
            if isinstance(part, tf.TensorSpec) and part.shape.rank and part.shape.rank > 1 and part.shape[1] is None
        ),
        None,
    )
