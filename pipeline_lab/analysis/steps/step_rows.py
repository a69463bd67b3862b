"""A job's time divided among the steps that it timed itself."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.trace.schema import MadeOnce


@dataclass(frozen=True, eq=False)
class StepRows:
    """The time of a job divided among its steps, without gaps and without overlaps; arrays of shape (steps,), ns.

    The host may launch steps before the device is done with earlier ones. So a step's row begins with its request for a batch,
    or when the result of the step before it was there, if that is later; it ends where the next row begins, the last one
    with its own result. On a CPU, where each step is done before the next begins, a row lasts from request to request.

        start(n) = max(request(n), ready(n - 1))
        wait(n) = what of the wait for the batch lies in the row: until then, the device had earlier steps to do
        compute(n) = ready(n) - max(batch arrived(n), ready(n - 1))
        between(n) = start(n + 1) - ready(n): Python, checkpoints, waiting for nothing that a step needs

    An evaluation between two steps belongs to neither row.

    Attributes:
        start_ns: Since the epoch.
        wait_ns, compute_ns, between_ns: The parts of a row.
        is_divided: Whether it is known what of the row after the wait is compute and what lies between; only their sum is, where
            nobody waited for the result of a device that works beside the host.
    """

    start_ns: IntArray
    wait_ns: IntArray
    compute_ns: IntArray
    between_ns: IntArray
    is_divided: NDArray[np.bool_]

    @MadeOnce
    def step_ns(self) -> IntArray:
        """Length of each row."""
        return self.wait_ns + self.compute_ns + self.between_ns


def divide_time(steps: pa.Table, *, launches_ahead: bool = False) -> StepRows:
    """Divide the time of a job among its steps.

    Args:
        steps: Of table ``runs.run_tables.STEPS``, in order. Without ``ready_ns``, as in older runs, a step is done when its
            call returns, but no later than the next step's request.
        launches_ahead: The call may return before the device is done, so that without ``ready_ns`` nobody knows when it was.
    """
    request, end = tables.ints(steps, "start_ns"), tables.ints(steps, "end_ns")
    away = tables.or_zero(steps, "away_ns")
    unknown = np.minimum(end, np.append(request[1:] - away[1:], end[-1:]))
    has_result = tables.valid(steps, "ready_ns")
    ready = np.where(has_result, tables.ints(steps, "ready_ns"), unknown)
    # A step begins when the one before it is done; where a clock was set back, time stands still until it is there again.
    start, ready = np.maximum.accumulate(np.stack((request, ready), axis=1).ravel()).reshape(-1, 2).T
    wait = tables.or_zero(steps, "wait_ns")
    arrived = np.clip(request + wait, start, ready)
    following = np.append(np.maximum(start[1:] - away[1:], ready[:-1]), ready[-1:])
    is_divided = has_result if launches_ahead else np.ones_like(has_result)
    return StepRows(start, arrived - start, ready - arrived, following - ready, is_divided)


def plain_steps(steps: pa.Table) -> NDArray[np.bool_]:
    """Say which steps count as the job without the profiler: after the warm-up and outside of windows."""
    warmup = tables.bools(steps, "warmup")
    return ~warmup & (tables.ints(steps, "window") < 0)
