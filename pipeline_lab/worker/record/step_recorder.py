"""Rows of the steps and samples tables, written for every step, profiled or not, and how much of a batch is padding."""

import contextlib
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.runs.run_tables import LABELS, NAMES, OUTPUTS, PADDING, SAMPLES, STEPS, TableWriter
from pipeline_lab.worker.job_context import Job
from pipeline_lab.worker.train.training_steps import Batch, TakenStep, Trainer
from pipeline_lab.worker.workloads.data_files import FILE_SHIFT, RECORD_MASK

PADDED, LENGTH, ELEMENTS = "spectrum", "length", "elements"
"""Entries of a batch: what is padded, the lengths of the examples, and the number of elements, where counted."""


@dataclass(frozen=True)
class BatchPadding:
    """Padding of one batch.

    Attributes:
        examples: Number of examples.
        elements: Number of elements, padding included.
        padding: Of them, padding.
    """

    examples: int
    elements: int
    padding: int


def count_elements(batch: Batch) -> Batch:
    """Return the batch with the number of elements as another entry, if its examples have lengths.

    May be traced into a graph.
    """
    if LENGTH not in batch or PADDED not in batch:
        return batch
    import tensorflow as tf  # only needed with padding

    padded: Any = batch[PADDED]
    is_ragged = isinstance(padded, tf.RaggedTensor)
    elements = tf.shape(padded.flat_values)[0] if is_ragged else tf.shape(padded)[0] * tf.shape(padded)[1]
    return {**batch, ELEMENTS: elements}


def measure_padding(batch: Batch) -> BatchPadding | None:
    """Compare the elements of a batch with the lengths of its examples; None where unknown."""
    counted = batch if ELEMENTS in batch else count_elements(batch)
    if ELEMENTS not in counted:
        return None
    lengths, elements = np.asarray(counted[LENGTH]), int(np.asarray(counted[ELEMENTS]).sum())
    return BatchPadding(len(lengths), elements, elements - int(lengths.sum()))


IntArray: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class StepPlace:
    """A step's place in the job.

    Attributes:
        step: Its number.
        is_warmup: It belongs to the warm-up.
        window: Number of the open profile window, ``NO_WINDOW`` for none.
        rss_bytes: Resident memory.
        away_ns: Pause before the step, for an evaluation.
    """

    step: int
    is_warmup: bool
    window: int
    rss_bytes: int
    away_ns: int = 0


class StepRecorder:
    """Reads each step's result and writes its row.

    On a GPU, a result is read after the next step has started, so that device and host overlap.
    """

    def __init__(self, job: Job, trainer: Trainer, *, is_gpu: bool, has_ids: bool) -> None:
        self._clock, self._trainer, self._lags = job.clock, trainer, is_gpu
        self._steps = TableWriter(job.folder.steps, STEPS)
        self._samples = TableWriter(job.folder.samples, SAMPLES) if has_ids else None
        self._labels = TableWriter(job.folder.labels, LABELS) if has_ids else None
        is_padded = has_ids and job.options.workload.has_varied_lengths
        self._padding = TableWriter(job.folder.padding, PADDING) if is_padded else None
        workload = job.options.workload
        has_names = has_ids and workload.has_names
        self._names = TableWriter(job.folder.names, NAMES) if has_names else None
        self._kept_step, self._outputs = job.options.training.keep_outputs_of_step, job.folder.outputs
        self._has_ids = has_ids
        self._pending: tuple[StepPlace, TakenStep] | None = None

    def record(self, place: StepPlace, taken: TakenStep) -> None:
        """Record a step that has started."""
        self.catch_up()
        if self._lags and taken.ended_ns is None:
            self._pending = (place, taken)
        else:
            self._finish(place, taken)

    def catch_up(self) -> None:
        """Read the pending result, if any."""
        if self._pending is not None:
            pending, self._pending = self._pending, None
            self._finish(*pending)

    def record_samples(self, step: int, batch: Batch) -> None:
        """Record file and record of each example of a batch, its label counts and its padding."""
        if self._samples is None or self._labels is None:
            return
        ids = np.concatenate(read_parts(self._trainer, batch["id"]))
        self._samples.extend([step] * len(ids), (ids >> FILE_SHIFT).tolist(), (ids & RECORD_MASK).tolist())
        labels = read_parts(self._trainer, batch["label"]) if "label" in batch else []
        if len(labels) == 1:  # fetching them from several replicas would delay the step
            values, counts = np.unique(labels[0], return_counts=True)
            self._labels.extend([step] * len(values), values.tolist(), counts.tolist())
        if self._names is not None:
            names = read_names(self._trainer, batch)
            self._names.extend([step] * len(names), names)
        self._record_padding(step, batch)

    def _record_padding(self, step: int, batch: Batch) -> None:
        """Record the padding of a batch, where its examples have lengths."""
        if self._padding is not None and (found := measure_padding(batch)) is not None:
            self._padding.append(step, found.examples, found.elements, found.padding)

    def close(self) -> None:
        """Read the pending result and close the tables."""
        try:
            self.catch_up()
        finally:
            self._steps.close()
            for table in (self._samples, self._labels, self._padding, self._names):
                if table is not None:
                    table.close()

    def _finish(self, place: StepPlace, taken: TakenStep) -> None:
        loss, accuracy = self._trainer.read(taken.result)
        self._steps.append(
            place.step,
            place.is_warmup,
            taken.start_ns,
            taken.wait_ns,
            self._clock.now_ns() if taken.ended_ns is None else taken.ended_ns,
            loss,
            accuracy,
            place.window,
            place.rss_bytes,
            place.away_ns,
        )
        if place.step == self._kept_step:
            self._keep_outputs(taken)

    def _keep_outputs(self, taken: TakenStep) -> None:
        """Keep the outputs of the step's forward pass."""
        _, _, outputs_in_parts = taken.result
        parts = [np.asarray(part, np.float32) for part in self._trainer.parts(outputs_in_parts)]
        outputs = np.concatenate([part.reshape(len(part), -1) for part in parts])
        labels = np.concatenate(read_parts(self._trainer, taken.batch["label"]))
        ids = np.concatenate(read_parts(self._trainer, taken.batch["id"])) if self._has_ids else None
        with contextlib.closing(TableWriter(self._outputs, OUTPUTS)) as table:
            table.extend(
                [self._kept_step] * len(outputs),
                [None] * len(outputs) if ids is None else (ids >> FILE_SHIFT).tolist(),
                [None] * len(outputs) if ids is None else (ids & RECORD_MASK).tolist(),
                labels.astype(np.int64).tolist(),
                outputs.tolist(),
            )


def read_parts(trainer: Trainer, value: Any) -> list[IntArray]:
    """Return one entry of a batch as arrays, shape (examples,) each, one per replica."""
    return [np.asarray(part).reshape(-1) for part in trainer.parts(value)]


def read_names(trainer: Trainer, batch: Batch) -> list[str]:
    """Return the names of a batch's examples; empty if they have none."""
    if "name" not in batch:
        return []
    return [name.decode() for part in trainer.parts(batch["name"]) for name in np.asarray(part).reshape(-1).tolist()]
