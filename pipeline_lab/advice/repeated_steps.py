"""How long the steps of a recorded run took without its input, for the emulated accelerator to repeat."""

from pathlib import Path

import numpy as np

from pipeline_lab.analysis.activity.activity import HOST_COMPUTE
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.diagnosis.saved import diagnose_saved
from pipeline_lab.analysis.idle.idle_gaps import IdleGaps
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from pipeline_lab.units import NS_PER_MS

MOST_TIMES = 1000
"""Steps that are repeated, the first ones after the warm-up; all of them are written into the options."""
DIGITS = 3
NO_COMPUTE = (
    "How long each step computed is not known, and no profile window shows the device; name a run whose windows do, or one "
    "that was launched with `pipeline-lab run`."
)


def read_repeated_steps(path: Path) -> tuple[float, ...]:
    """Return how long each step of a run or capture took on its device, ms.

    Raises:
        TraceReadError: Nothing in it can be read.
        TraceIncompleteError: It holds no steps.
    """
    found = device_times(diagnose_saved(path))
    times = tuple(round(float(ns) / NS_PER_MS, DIGITS) for ns in found[:MOST_TIMES] if ns >= NS_PER_MS / 10**DIGITS)
    if not times:
        raise TraceIncompleteError(f"{path.name} holds no steps whose times could be repeated; name a run with steps.")
    return times


def device_times(diagnosis: Diagnosis) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return the busy time of the device in each recorded step; of a job on the host, what each step took after its batch came."""
    gaps, steps, job = diagnosis.idle_gaps, diagnosis.steps, diagnosis.job_steps
    has_device = isinstance(gaps, IdleGaps) and gaps.device != HOST_COMPUTE
    if not has_device and not isinstance(job, Unavailable):
        known = ~tables.bools(job.table, "warmup") & tables.valid(job.table, "compute_ns")
        if not known.any():
            raise TraceIncompleteError(NO_COMPUTE)
        return tables.ints(job.table, "compute_ns")[known]
    if isinstance(steps, Unavailable):
        raise TraceIncompleteError(steps.reason)
    return np.rint(tables.ints(steps.table, "busy_ns") / (steps.steps_per_marker or 1.0)).astype(np.int64)
