"""Evaluation passes between the training steps: a separate pipeline, and a step that does not change the model."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pipeline_lab.errors import DataError
from pipeline_lab.runs.run_events import EvaluationEvent, PhaseEvent
from pipeline_lab.runs.run_tables import TableWriter
from pipeline_lab.worker.job import Job
from pipeline_lab.worker.record.own_process import clear_on_thread
from pipeline_lab.worker.record.step_recorder import read_names, read_parts
from pipeline_lab.worker.train.training_steps import Batch, Trainer
from pipeline_lab.worker.workloads.data_files import FILE_SHIFT, RECORD_MASK


class EvaluationPasses:
    """Evaluates the model on request, each time from the beginning of the evaluation data.

    Args:
        job: The job.
        trainer: Has the model.
        make_dataset: Builds the pipeline of a pass.
        table: For file and record of each example, of schema ``EVALUATED``; None where unknown.
        first_file: Index of the first evaluated file, where ids count only evaluated files.
    """

    def __init__(
        self, job: Job, trainer: Trainer, make_dataset: Callable[[], Any], table: TableWriter | None, first_file: int
    ) -> None:
        self._job, self._trainer, self._make_dataset = job, trainer, make_dataset
        self._table, self._first_file = table, first_file
        self._passes = 0

    def run(self, steps: int) -> None:
        """Make one pass after that number of steps, warm-up included.

        Raises:
            DataError: The pipeline of the pass yields no batch.
        """
        clock, log = self._job.clock, self._job.log
        log.write(PhaseEvent("evaluating"))
        started_ns = clock.now_ns()
        batches = [iter(self._trainer.distribute(self._make_dataset()))]
        results: list[tuple[float, float]] = []
        first_batch_ns = 0
        for _ in range(self._job.options.training.evaluate_steps):
            batch = None if self._job.stop.is_set else next(batches[0], None)
            if batch is None:
                break
            first_batch_ns = first_batch_ns or clock.now_ns() - started_ns
            results.append(self._trainer.read(self._trainer.evaluate(batch)))
            self._note_examples(batch)
        clear_on_thread(batches)
        if not results and not self._job.stop.is_set:
            raise DataError(
                "The evaluation has no batch: its files have fewer examples than one batch; hold out more files "
                "(training.held_out_files), or use a smaller batch."
            )
        if results:
            loss, accuracy = (float(values.mean()) for values in np.array(results).T)
            log.write(
                EvaluationEvent(
                    number=self._passes,
                    steps=steps,
                    started_ns=started_ns,
                    ended_ns=clock.now_ns(),
                    first_batch_ns=first_batch_ns,
                    batches=len(results),
                    loss=loss if np.isfinite(loss) else None,
                    accuracy=accuracy if np.isfinite(accuracy) else None,
                )
            )
            self._passes += 1
        log.write(PhaseEvent("training"))

    def _note_examples(self, batch: Batch) -> None:
        if self._table is None:
            return
        ids = np.concatenate(read_parts(self._trainer, batch["id"]))
        files = (ids >> FILE_SHIFT) + self._first_file
        names: Sequence[str | None] = read_names(self._trainer, batch) or [None] * len(ids)
        self._table.extend([self._passes] * len(ids), files.tolist(), (ids & RECORD_MASK).tolist(), names)
