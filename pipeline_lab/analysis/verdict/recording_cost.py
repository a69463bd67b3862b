"""What recording adds to the steps of a job."""

from dataclasses import dataclass

import numpy as np

from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.results import Results
from pipeline_lab.analysis.steps.step_breakdown import StepBreakdown
from pipeline_lab.errors import Unavailable

PROFILER_SLOWDOWN_PERCENT = 10.0
"""Recorded steps that are longer than others by less are taken as they are."""
FEWEST_STEPS = 10
"""With fewer recorded steps, or fewer others, their medians are not compared."""


@dataclass(frozen=True)
class RecordingCost:
    """What recording does to the steps of a job.

    Attributes:
        share: Of a recorded step, what it takes longer than others, waits for input aside.
        plain_ns: Mean of the steps that were not recorded.
    """

    share: float
    plain_ns: float

    def added_ns(self, breakdown: StepBreakdown) -> float:
        """Return what it adds to the recorded steps in all: at most the time that looks like launching ops."""
        return min(self.share * breakdown.total_ns, breakdown.dispatch_ns)


def has_device_work(breakdown: StepBreakdown) -> bool:
    """Say whether work of a device was recorded."""
    return breakdown.device_compute_ns + breakdown.device_copy_ns > 0


def find_recording_cost(results: Results, breakdown: StepBreakdown) -> RecordingCost | None:
    """Return what recording does to the steps; None where that is little, or not known.

    The profiler works on the host, for each op that is launched, so beside a device that time looks like dispatch.

    Args:
        results: Of the job.
        breakdown: The parts of the recorded steps.
    """
    job = results.job_steps
    if isinstance(job, Unavailable) or not has_device_work(breakdown):
        return None
    step_ns = tables.ints(job.table, "step_ns")
    working_ns = step_ns - np.where(tables.valid(job.table, "wait_ns"), tables.ints(job.table, "wait_ns"), 0)
    measured, recorded = ~tables.bools(job.table, "warmup"), tables.bools(job.table, "profiled")
    plain, recorded = measured & ~recorded, measured & recorded
    if min(plain.sum(), recorded.sum()) < FEWEST_STEPS:
        return None
    longer_ns = [np.median(each[recorded]) - np.median(each[plain]) for each in (working_ns, step_ns)]
    added_ns = float(min(longer_ns))  # what a wait for input hides makes no step longer
    if added_ns <= PROFILER_SLOWDOWN_PERCENT / 100.0 * np.median(step_ns[plain]):
        return None
    return RecordingCost(added_ns / float(step_ns[recorded].mean()), float(step_ns[plain].mean()))
