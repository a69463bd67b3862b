"""Rows of the steps and samples tables, written for every step, profiled or not, and how much of a batch is padding."""

import contextlib
from collections import deque
from concurrent.futures import Future
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.data_classes import dataclass
from pipeline_lab.runs.run_tables import LABELS, NAMES, OUTPUTS, PADDING, SAMPLES, STEPS, TableWriter
from pipeline_lab.worker.job_context import Job
from pipeline_lab.worker.record.step_results import LENGTH, STEPS_AHEAD, ResultReader, StepResult, has_entries_on_device
from pipeline_lab.worker.train.training_steps import Batch, TakenStep, Trainer
from pipeline_lab.worker.workloads.data_files import FILE_SHIFT, RECORD_MASK

PADDED, ELEMENTS = "spectrum", "elements"
"""Entries of a batch: what is padded, and the number of elements, where counted."""


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
class BatchContents:
    """What is recorded of a batch; None for what it does not have.

    Attributes:
        ids: File and record of each example, shape (examples,).
        labels: Of each example, shape (examples,).
        names: Of each example.
        padding: How much of it is padding.
    """

    ids: IntArray
    labels: IntArray | None
    names: list[str] | None
    padding: BatchPadding | None


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
    """Writes the row of each step, once its result has arrived.

    A device that works beside the host is a few steps behind it: results are read on other threads, and the training thread
    waits only when the device is :data:`STEPS_AHEAD` steps behind.

    Args:
        is_asynchronous: The device works beside the host.
        has_ids: Batches say which examples they hold.

    Attributes:
        exposed_wait_ns: How long steps waited for their batches while the device had nothing to do, summed over all rows.
    """

    def __init__(self, job: Job, trainer: Trainer, *, is_asynchronous: bool, has_ids: bool) -> None:
        self._clock, self._trainer, self._is_asynchronous = job.clock, trainer, is_asynchronous
        self._results = ResultReader(trainer, job.clock)
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
        self._pending: deque[tuple[StepPlace, TakenStep, Future[StepResult]]] = deque()
        self._pending_samples: deque[tuple[int, Future[BatchContents]]] = deque()
        self._ready_ns = self.exposed_wait_ns = 0

    def record(self, place: StepPlace, taken: TakenStep) -> None:
        """Record a step that has been launched."""
        if self._is_asynchronous and taken.ready_ns is None:
            self._pending.append((place, taken, self._results.request(taken.result)))
            self._write_arrived(STEPS_AHEAD - 1 if self._ready_ns else 0)  # the first copy takes long, it is traced
            return
        self.catch_up()
        loss, accuracy = self._trainer.read(taken.result)
        ready_ns = self._clock.now_ns() if taken.ready_ns is None else taken.ready_ns
        self._write(place, taken, max(taken.returned_ns, ready_ns), loss, accuracy, ready_ns)

    def catch_up(self) -> None:
        """Wait for all results, if any are pending."""
        self._write_arrived(0)

    def record_samples(self, step: int, batch: Batch) -> None:
        """Record file and record of each example of a batch, its label counts and its padding.

        What lies on a device is copied beside the training.
        """
        if self._samples is None:
            return
        if self._is_asynchronous and has_entries_on_device(batch):
            self._pending_samples.append((step, self._results.beside(self._read_batch, batch)))
        else:
            self._write_samples(step, self._read_batch(batch))

    def close(self) -> None:
        """Wait for the pending results and close the tables."""
        try:
            self.catch_up()
        finally:
            self._results.close()
            self._steps.close()
            for table in (self._samples, self._labels, self._padding, self._names):
                if table is not None:
                    table.close()

    def _write_arrived(self, most_pending: int) -> None:
        """Write what has arrived; wait until no more than that many steps are pending."""
        while self._pending and (len(self._pending) > most_pending or self._pending[0][2].done()):
            place, taken, pending = self._pending.popleft()
            result = pending.result()
            self._write(place, taken, taken.returned_ns, result.loss, result.accuracy, result.ready_ns)
        while self._pending_samples and (
            len(self._pending_samples) > most_pending or self._pending_samples[0][1].done()
        ):
            step, contents = self._pending_samples.popleft()
            self._write_samples(step, contents.result())

    def _write(
        self, place: StepPlace, taken: TakenStep, end_ns: int, loss: float, accuracy: float, ready_ns: int
    ) -> None:
        """Write the row of a step."""
        self.exposed_wait_ns += max(0, taken.arrived_ns - max(taken.start_ns, self._ready_ns))
        self._ready_ns = max(self._ready_ns, ready_ns)
        self._steps.append(
            place.step,
            place.is_warmup,
            taken.start_ns,
            taken.wait_ns,
            end_ns,
            loss,
            accuracy,
            place.window,
            place.rss_bytes,
            place.away_ns,
            None,
            None,
            self._ready_ns,
        )
        if place.step == self._kept_step:
            self._keep_outputs(taken)

    def _read_batch(self, batch: Batch) -> BatchContents:
        labels = read_parts(self._trainer, batch["label"]) if self._labels is not None and "label" in batch else []
        return BatchContents(
            _join(read_parts(self._trainer, batch["id"])),
            _join(labels) if labels else None,
            None if self._names is None else read_names(self._trainer, batch),
            None if self._padding is None else measure_padding(batch),
        )

    def _write_samples(self, step: int, contents: BatchContents) -> None:
        ids = contents.ids
        if self._samples is not None:
            self._samples.extend([step] * len(ids), (ids >> FILE_SHIFT).tolist(), (ids & RECORD_MASK).tolist())
        if self._labels is not None and contents.labels is not None:
            values, counts = np.unique(contents.labels, return_counts=True)
            self._labels.extend([step] * len(values), values.tolist(), counts.tolist())
        if self._names is not None and contents.names is not None:
            self._names.extend([step] * len(contents.names), contents.names)
        if self._padding is not None and (found := contents.padding) is not None:
            self._padding.append(step, found.examples, found.elements, found.padding)

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


def _join(parts: list[IntArray]) -> IntArray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def read_names(trainer: Trainer, batch: Batch) -> list[str]:
    """Return the names of a batch's examples; empty if they have none."""
    if "name" not in batch:
        return []
    return [name.decode() for part in trainer.parts(batch["name"]) for name in np.asarray(part).reshape(-1).tolist()]
