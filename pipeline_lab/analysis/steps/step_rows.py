"""A job's time divided among the steps that it timed itself."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.columns import BoolArray
from pipeline_lab.data_classes import dataclass
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

    @property
    def parts(self) -> tuple[IntArray, IntArray, IntArray]:
        """The parts, in their order."""
        return self.wait_ns, self.compute_ns, self.between_ns

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
    return StepDivider().divide(steps, launches_ahead=launches_ahead)


class StepDivider:
    """Divides the time of a job among its steps as :func:`divide_time` does.

    Of a job in progress only that of the steps since the last time is divided anew, and of the last one then, which ends where the next
    one begins.
    """

    def __init__(self) -> None:
        self._noted: _Noted | None = None
        self._rows = StepRows(_NO_TIMES, _NO_TIMES, _NO_TIMES, _NO_TIMES, np.empty(0, np.bool_))

    def divide(self, steps: pa.Table, *, launches_ahead: bool = False) -> StepRows:
        """Divide the time among all steps; the arguments are those of :func:`divide_time`."""
        noted = _Noted(
            request=tables.ints(steps, "start_ns"),
            end=tables.ints(steps, "end_ns"),
            ready=tables.ints(steps, "ready_ns"),
            has_result=tables.valid(steps, "ready_ns"),
            wait=tables.or_zero(steps, "wait_ns"),
            away=tables.or_zero(steps, "away_ns"),
        )
        kept = self._unchanged(noted)
        before = [each[:kept] for each in (self._rows.start_ns, *self._rows.parts)]
        ready = before[0][-1:] + before[1][-1:] + before[2][-1:]
        new = _divide(_Noted._make(each[kept:] for each in noted), ready)
        is_divided = noted.has_result if launches_ahead else np.ones_like(noted.has_result)
        start, wait, compute, between = map(np.concatenate, zip(before, new, strict=True))
        self._noted, self._rows = noted, StepRows(start, wait, compute, between, is_divided)
        return self._rows

    def _unchanged(self, noted: "_Noted") -> int:
        """Return how many steps of the last time are divided as they were."""
        if self._noted is None:
            return 0
        known = len(self._noted.request)
        is_longer = all(_begins_with(each, old) for each, old in zip(noted, self._noted, strict=True))
        return max(0, known - 1) if is_longer else 0


def _begins_with(longer: NDArray[Any], old: NDArray[Any]) -> bool:
    """Say whether an array begins with another one; what lies in the same memory is not compared."""
    place, old_place = (array.__array_interface__["data"][0] for array in (longer, old))
    return (place == old_place and len(longer) >= len(old)) or np.array_equal(longer[: len(old)], old)


_NO_TIMES: IntArray = np.empty(0, np.int64)


class _Noted(NamedTuple):
    """What a job noted of consecutive steps, arrays of shape (steps,)."""

    request: IntArray
    end: IntArray
    ready: IntArray
    has_result: BoolArray
    wait: IntArray
    away: IntArray


def _divide(noted: _Noted, earlier: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return where rows begin, and their parts; ``earlier`` is when the step before the first one was done, empty if there is none."""
    request, away = noted.request, noted.away
    unknown = np.minimum(noted.end, np.append(request[1:] - away[1:], noted.end[-1:]))
    moments = np.stack((request, np.where(noted.has_result, noted.ready, unknown)), axis=1).ravel()
    # A step begins when the one before it is done; where a clock was set back, time stands still until it is there again.
    moments = np.maximum.accumulate(np.concatenate((earlier, moments)))[len(earlier) :]
    start, ready = moments[::2], moments[1::2]
    arrived = np.clip(request + noted.wait, start, ready)
    following = np.append(np.maximum(start[1:] - away[1:], ready[:-1]), ready[-1:])
    return start, arrived - start, ready - arrived, following - ready


def pick(chosen: BoolArray) -> slice | BoolArray:
    """Return what picks the chosen steps: a slice, which copies nothing, where they are the last ones, as all after the warm-up mostly are."""
    first = int(np.argmax(chosen))
    return slice(first, None) if chosen[first:].all() else chosen


def plain_steps(steps: pa.Table) -> NDArray[np.bool_]:
    """Say which steps count as the job without the profiler: after the warm-up and outside of windows."""
    warmup = tables.bools(steps, "warmup")
    return ~warmup & (tables.ints(steps, "window") < 0)
