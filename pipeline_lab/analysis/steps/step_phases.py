"""The steps of a job by phase: warm-up, first epoch, later epochs.

The first epoch fills caches and shuffle buffers and later ones profit, so an average over both says little. An epoch
ends with the example that makes the number of examples taken that of all records, whatever order they came in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.declaration import Analysis, Document, PerJob, to_ms
from pipeline_lab.analysis.steps.job_steps import divide_time
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_documents import DataFile

NO_EPOCHS = (
    "Epochs are known for runs whose files and samples were counted; launch the job with `pipeline-lab run` and "
    "sample_probe on."
)


class Phase(StrEnum):
    """Where in a job a step lies."""

    WARMUP = "warm-up"
    FIRST_EPOCH = "first epoch"
    LATER_EPOCHS = "later epochs"


@dataclass(frozen=True)
class PhaseTimes:
    """The steps of one phase.

    Attributes:
        phase: Which one.
        steps: How many.
        first_step: Number of the first of them.
        median_ns, p95_ns: Of the time from one step to the next.
        total_ns, wait_ns: Their sum, and of it the waits for input.
    """

    phase: Phase
    steps: int
    first_step: int
    median_ns: float
    p95_ns: float
    total_ns: int
    wait_ns: int

    @property
    def mean_ns(self) -> float:
        return self.total_ns / self.steps

    @property
    def wait_percent(self) -> float:
        return 100.0 * self.wait_ns / self.total_ns if self.total_ns else 0.0


@dataclass(frozen=True)
class StepPhases:
    """Every phase that a job has steps of, in order."""

    phases: tuple[PhaseTimes, ...]


def measure_phases(
    steps: pa.Table, samples: pa.Table, files: Sequence[DataFile], epoch_examples: int | None = None
) -> StepPhases:
    """Divide the steps of a run.

    Args:
        steps: Of schema ``runs.run_tables.STEPS``, in order.
        samples: Of schema ``runs.run_tables.SAMPLES``.
        files: What the job reads.
        epoch_examples: What the steps are sent of one pass over the files; None for all of their records.

    Raises:
        TraceIncompleteError: The records of the files or the samples were not counted.
    """
    records = [file.records for file in files]
    if not steps.num_rows or not samples.num_rows or not records or None in records:
        raise TraceIncompleteError(NO_EPOCHS)
    number = tables.ints(steps, "step")
    epoch = _epochs(number, tables.ints(samples, "step"), epoch_examples or sum(filter(None, records)))
    warmup = tables.bools(steps, "warmup")
    rows_of_steps = divide_time(steps)
    length, wait = rows_of_steps.step_ns, rows_of_steps.wait_ns
    members = (
        (Phase.WARMUP, warmup),
        (Phase.FIRST_EPOCH, ~warmup & (epoch == 0)),
        (Phase.LATER_EPOCHS, ~warmup & (epoch > 0)),
    )
    return StepPhases(
        tuple(
            PhaseTimes(
                phase,
                steps=int(rows.sum()),
                first_step=int(number[rows][0]),
                median_ns=float(np.median(length[rows])),
                p95_ns=float(np.percentile(length[rows], 95)),
                total_ns=int(length[rows].sum()),
                wait_ns=int(wait[rows].sum()),
            )
            for phase, rows in members
            if rows.any()
        )
    )


def _epochs(step: IntArray, sample_step: IntArray, records: int) -> IntArray:
    """Return the epoch in which each step begins, shape of ``step``."""
    taken_before = np.searchsorted(np.sort(sample_step), step)
    return np.asarray(taken_before // max(1, records), np.int64)


def phase_to_json(times: PhaseTimes) -> Document:
    return {
        "phase": times.phase.value,
        "steps": times.steps,
        "first_step": times.first_step,
        "median_ms": to_ms(times.median_ns),
        "p95_ms": to_ms(times.p95_ns),
        "total_ms": to_ms(times.total_ns),
        "wait_ms": to_ms(times.wait_ns),
        "wait_percent": times.wait_percent,
    }


def _to_json(found: StepPhases) -> Document:
    return {"basis": "all steps", "phases": [phase_to_json(one) for one in found.phases]}


STEP_PHASES = Analysis(
    StepPhases,
    per_job=PerJob(
        lambda job: measure_phases(
            job.tables.steps,
            job.tables.samples,
            job.tables.trained_files,
            None if job.tables.epoch is None else job.tables.epoch.examples,
        ),
        NO_EPOCHS,
    ),
    to_json=_to_json,
)
