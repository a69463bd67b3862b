"""The steps of a job by phase: warm-up, first epoch, later epochs.

The first epoch fills caches and shuffle buffers and later ones profit, so an average over both says little. An epoch
ends with the example that makes the number of examples taken that of all records, whatever order they came in; of a
script that was watched, with its pass over the data. A script that repeats its data inside the pipeline shows no passes:
there a lasting change of the step time divides the job, as when a cache is complete.
"""

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.columns import BoolArray, FloatArray
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, PerJob, to_ms
from pipeline_lab.analysis.steps.step_rows import divide_time
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_documents import DataFile

NO_EPOCHS = (
    "Epochs are known for runs whose files and samples were counted, and for scripts whose steps are timed; launch the job "
    "with `pipeline-lab run` and sample_probe on, or the script with `pipeline-lab watch`."
)


APART = 0.2
"""Share by which the median step of two parts of a job differs where they are judged apart.

A judgment, not measured: it is the share of a step from which on a loss names a run (``losses.STRONG_PERCENT``). The median
of all steps lies between the two, so below this share it is off by less than such a loss. What makes a first epoch
differ, a cache that fills or files that come from the disk, mostly makes it several times as long.
"""
BLOCKS, FEWEST_BLOCKS = 100, 20
"""Blocks of steps that are compared in the search for a change, and fewer than which it is not searched for."""
CHANCE = 1e-4
"""Chance of so large a change by ranks alone; small, since neighboring blocks resemble each other too."""
KEEPS_LEVEL = 0.9
"""Share of the blocks on either side of a change that lie on their side of the middle: a job that swings has no two levels."""


class Phase(StrEnum):
    """Where in a job a step lies."""

    WARMUP = "warm-up"
    FIRST_EPOCH = "first epoch"
    LATER_EPOCHS = "later epochs"
    BEFORE_CHANGE = "before its steps changed"
    AFTER_CHANGE = "after its steps changed"


LATER = {Phase.FIRST_EPOCH: Phase.LATER_EPOCHS, Phase.BEFORE_CHANGE: Phase.AFTER_CHANGE}
"""What follows a part that is judged apart."""


@dataclass(frozen=True)
class PhaseTimes:
    """The steps of one phase.

    Attributes:
        phase: Which one.
        steps: How many.
        first_step: Number of the first of them.
        median_ns, p95_ns: Of the time from one step to the next.
        total_ns, wait_ns: Their sum, and of it the waits for input; None where these are not known.
    """

    phase: Phase
    steps: int
    first_step: int
    median_ns: float
    p95_ns: float
    total_ns: int
    wait_ns: int | None

    @property
    def mean_ns(self) -> float:
        return self.total_ns / self.steps

    @property
    def wait_percent(self) -> float | None:
        if self.wait_ns is None:
            return None
        return 100.0 * self.wait_ns / self.total_ns if self.total_ns else 0.0


@dataclass(frozen=True)
class EpochBoundaries:
    """What the beginnings of later epochs cost.

    Attributes:
        count: How many there are.
        wait_ns: Waits for their first batches, beyond what a step usually waits.
        share: Of the time of all measured steps, 0 to 1.
    """

    count: int
    wait_ns: int
    share: float


@dataclass(frozen=True)
class StepPhases:
    """Every phase that a job has steps of, in order.

    Attributes:
        phases: The phases.
        boundaries: What the beginnings of epochs cost; None where passes were not seen.
    """

    phases: tuple[PhaseTimes, ...]
    boundaries: EpochBoundaries | None = None


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
    if tables.valid(steps, "epoch").any():
        return _of_passes(steps)
    records = [file.records for file in files]
    if not steps.num_rows or not samples.num_rows or not records or None in records:
        raise TraceIncompleteError(NO_EPOCHS)
    number = tables.ints(steps, "step")
    epoch = _epochs(number, tables.ints(samples, "step"), epoch_examples or sum(filter(None, records)))
    return StepPhases(_divide(steps, epoch > 0, Phase.FIRST_EPOCH, Phase.LATER_EPOCHS))


def _divide(steps: pa.Table, is_later: BoolArray, before: Phase, after: Phase) -> tuple[PhaseTimes, ...]:
    """Sum up the warm-up and the two parts of the other steps."""
    warmup, number = tables.bools(steps, "warmup"), tables.ints(steps, "step")
    of_steps = divide_time(steps)
    length, wait, is_known = of_steps.step_ns, of_steps.wait_ns, tables.valid(steps, "wait_ns")
    members = ((Phase.WARMUP, warmup), (before, ~warmup & ~is_later), (after, ~warmup & is_later))
    return tuple(
        PhaseTimes(
            phase,
            steps=int(rows.sum()),
            first_step=int(number[rows][0]),
            median_ns=float(np.median(length[rows])),
            p95_ns=float(np.percentile(length[rows], 95)),
            total_ns=int(length[rows].sum()),
            wait_ns=int(wait[rows].sum()) if is_known[rows].any() else None,
        )
        for phase, rows in members
        if rows.any()
    )


def _of_passes(steps: pa.Table) -> StepPhases:
    """Divide the steps by the passes that were seen, or by a lasting change of their time where that tells more."""
    epoch = tables.ints(steps, "epoch")
    boundaries = _boundaries(steps, epoch)
    by_epoch = _divide(steps, epoch > epoch[0], Phase.FIRST_EPOCH, Phase.LATER_EPOCHS)
    measured = np.flatnonzero(~tables.bools(steps, "warmup"))
    change = find_change(divide_time(steps).step_ns[measured])
    if change is None or _differ(by_epoch):
        return StepPhases(by_epoch, boundaries)
    is_after = np.arange(steps.num_rows) >= measured[change]
    return StepPhases(_divide(steps, is_after, Phase.BEFORE_CHANGE, Phase.AFTER_CHANGE), boundaries)


def _differ(phases: tuple[PhaseTimes, ...]) -> bool:
    """Say whether the median step of the later epochs differs from that of the first by what is judged apart."""
    medians = [one.median_ns for one in phases if one.phase is not Phase.WARMUP]
    return len(medians) == 2 and abs(medians[0] - medians[1]) >= APART * max(medians)


def _boundaries(steps: pa.Table, epoch: IntArray) -> EpochBoundaries | None:
    measured = ~tables.bools(steps, "warmup") & tables.valid(steps, "wait_ns")
    first = measured & np.append(False, epoch[1:] != epoch[:-1])
    of_steps = divide_time(steps)
    total_ns = int(of_steps.step_ns[~tables.bools(steps, "warmup")].sum())
    if not first.any() or not total_ns:
        return None
    wait = of_steps.wait_ns
    usual_ns = float(np.median(wait[measured & ~first])) if (measured & ~first).any() else 0.0
    beyond_ns = int(np.maximum(wait[first] - usual_ns, 0).sum())
    return EpochBoundaries(int(first.sum()), beyond_ns, beyond_ns / total_ns)


def find_change(length: IntArray) -> int | None:
    """Return the place of the one lasting change of the step time, None where there is none.

    By the sum of ranks (Pettitt's test), which single long steps do not move. Neighboring steps resemble each other, so
    blocks of them are compared, and each side has to keep its level.

    Args:
        length: Of consecutive steps, shape (n,).
    """
    n = min(len(length), BLOCKS)
    if n < FEWEST_BLOCKS:
        return None
    parts = np.array_split(length.astype(np.float64), n)
    blocks = np.array([np.median(part) for part in parts])
    ranks = np.empty(n)
    ranks[np.argsort(blocks, kind="stable")] = np.arange(1, n + 1)
    moved = np.abs(2 * np.cumsum(ranks)[:-1] - np.arange(1, n) * (n + 1))
    place = int(np.argmax(moved)) + 1
    chance = 2 * np.exp(-6 * float(moved[place - 1]) ** 2 / (n**3 + n**2))
    before, after = blocks[:place], blocks[place:]
    apart = abs(np.median(before) - np.median(after)) >= APART * max(np.median(before), np.median(after))
    middle = (np.median(before) + np.median(after)) / 2
    keeps = min(_share_on_its_side(before, middle), _share_on_its_side(after, middle)) >= KEEPS_LEVEL
    if chance > CHANCE or not apart or not keeps:
        return None
    return sum(map(len, parts[:place]))


def _share_on_its_side(values: FloatArray, middle: float) -> float:
    """Return how many of the values lie on the side of the middle that their median lies on, 0 to 1."""
    return float(np.mean((values > middle) == (np.median(values) > middle)))


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
    boundaries = found.boundaries
    return {
        "basis": "all steps",
        "phases": [phase_to_json(one) for one in found.phases],
        "epoch_boundaries": boundaries
        and {"count": boundaries.count, "wait_ms": to_ms(boundaries.wait_ns), "share_percent": 100 * boundaries.share},
    }


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
