"""Rows of the steps and samples tables, written for every step, profiled or not."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline_lab.runs.tables import LABELS, SAMPLES, STEPS, TableWriter
from pipeline_lab.worker.data.record_id import FILE_SHIFT, RECORD_MASK
from pipeline_lab.worker.job import Job
from pipeline_lab.worker.trainer import Trainer


@dataclass(frozen=True)
class StepTimes:
    """What is known of a step as soon as it is under way; times in ns since the epoch."""

    step: int
    is_warmup: bool
    start_ns: int
    arrived_ns: int
    window: int
    rss_bytes: int


class StepRecorder:
    """Reads each step's result and writes its row.

    A GPU works beside the host: reading a result at once would make the two take turns. There, a step's result is
    read after the next step was started.
    """

    def __init__(self, job: Job, trainer: Trainer, *, is_gpu: bool, has_ids: bool) -> None:
        self._clock, self._trainer, self._lags = job.clock, trainer, is_gpu
        self._steps = TableWriter(job.folder.steps, STEPS)
        self._samples = TableWriter(job.folder.samples, SAMPLES) if has_ids else None
        self._labels = TableWriter(job.folder.labels, LABELS) if has_ids else None
        self._pending: tuple[StepTimes, Any] | None = None

    def record(self, times: StepTimes, result: Any) -> None:
        """Take a step that was started."""
        self.catch_up()
        if self._lags:
            self._pending = (times, result)
        else:
            self._finish(times, result)

    def catch_up(self) -> None:
        """Read the result that is still on its way, if there is one."""
        if self._pending is not None:
            pending, self._pending = self._pending, None
            self._finish(*pending)

    def record_samples(self, step: int, batch: Any) -> None:
        """Note file and record of each example of a batch, and how often each label is in it."""
        if self._samples is not None and self._labels is not None:
            ids = self._trainer.read_ids(batch)
            self._samples.extend([step] * len(ids), (ids >> FILE_SHIFT).tolist(), (ids & RECORD_MASK).tolist())
            labels = self._trainer.read_labels(batch)
            if labels is not None:
                values, counts = np.unique(labels, return_counts=True)
                self._labels.extend([step] * len(values), values.tolist(), counts.tolist())

    def close(self) -> None:
        """Read what is still on its way and end the tables."""
        try:
            self.catch_up()
        finally:
            self._steps.close()
            for table in (self._samples, self._labels):
                if table is not None:
                    table.close()

    def _finish(self, times: StepTimes, result: Any) -> None:
        loss, accuracy = self._trainer.read(result)
        self._steps.append(
            times.step,
            times.is_warmup,
            times.start_ns,
            times.arrived_ns - times.start_ns,
            self._clock.now_ns(),
            loss,
            accuracy,
            times.window,
            times.rss_bytes,
        )
