"""The compute-only step and the input-only time per batch, beside the end-to-end step: how much there is to gain."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, JobView, LaterView, PerJob, to_ms
from pipeline_lab.analysis.declaring.job_events import JobEvents
from pipeline_lab.analysis.steps.job_steps import MODERATE_PERCENT
from pipeline_lab.analysis.steps.step_phases import PhaseTimes
from pipeline_lab.analysis.steps.step_rows import StepRows, divide_time, plain_steps
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from pipeline_lab.runs.run_events import CalibrationEvent
from pipeline_lab.units import format_duration

NOT_CALIBRATED = (
    "The step alone and the pipeline alone were not timed; launch the job with `pipeline-lab run` and "
    "training.calibrate on, or the script with `pipeline-lab watch --calibrate`."
)
DISTURBED = (
    "The compute-only step took longer ({alone}) than in training ({training}), so something else used the "
    "machine while it was timed; launch the job again on a quieter one."
)
TOLERANCE = 1.1
"""How much longer than in training the step may take alone before its timing is not believed."""

NO_PAGE_CACHE = Unavailable(
    "Whether the files came from the page cache or from the disk is not known: the run is an older one, or it asked for a "
    "cold page cache and the system kept the files in it."
)


@dataclass(frozen=True)
class Calibration:
    """What the worker timed before the steps.

    Attributes:
        device_only_ns: The compute-only step; no more than a step took in training once its batch was there, or in all where that
            is not known, unless its time is set, as on the emulated accelerator.
        pipeline_only_ns: The input-only time per batch; None if it could not be timed.
        step_ns: The end-to-end step: the median step with input, unprofiled.
        device_only_cpu_ns, pipeline_only_cpu_ns: Processor time of the whole job for each of the two; None if it was
            not noted.
        page_cache: ``cold`` if the input-only time was taken on files read from disk, ``warm`` if from the page cache; None where
            that is not known.
        busy_ns: What a step took in training once its batch was there, the median of unprofiled ones; None where that is not known, or
            the compute-only step leaves out what a script does around its functions.
        is_of_end: It was timed once the steps were over, so that the pipeline alone is that of the last epoch.
        mean_step_ns: The mean step with input, unprofiled, where the compute-only step is the mean of set times; else None.
    """

    device_only_ns: float
    pipeline_only_ns: float | None
    step_ns: float
    device_only_cpu_ns: float | None = None
    pipeline_only_cpu_ns: float | None = None
    page_cache: str | None = None
    busy_ns: float | None = None
    is_of_end: bool = False
    mean_step_ns: float | None = None

    @property
    def utilisation_percent(self) -> float:
        """Compute-only over end-to-end step: how much of the step the device would need if its input were free."""
        return min(100.0, 100.0 * self.device_only_ns / (self.mean_step_ns or self.step_ns))


def read_calibration(
    events: JobEvents, steps: pa.Table, *, rows: StepRows | None = None, times_vary: bool = False
) -> Calibration:
    """Read the last calibration of a run.

    Args:
        events: The worker's events.
        steps: Of schema ``runs.run_tables.STEPS``.
        rows: What :func:`divide_time` returned for these steps, where it was called before.
        times_vary: The steps take set times that differ, of which the compute-only step is the mean.

    Raises:
        TraceIncompleteError: The job was not calibrated, the calibration was disturbed, or there is no step after the
            warm-up.
    """
    found = [event for event in events.of(CalibrationEvent) if event.device_only_ns is not None]
    plain = plain_steps(steps)
    if not plain.any():  # all steps were profiled
        plain = ~tables.bools(steps, "warmup")
    if not found or not plain.any():
        raise TraceIncompleteError(NOT_CALIBRATED)
    device_only_ns = found[-1].device_only_ns
    assert device_only_ns is not None
    rows = rows or divide_time(steps)
    step_ns = float(np.median(rows.step_ns[plain]))
    is_set = not found[-1].device_only_steps
    if not is_set and device_only_ns > TOLERANCE * step_ns:
        raise TraceIncompleteError(
            DISTURBED.format(alone=format_duration(device_only_ns), training=format_duration(step_ns))
        )
    return Calibration(
        device_only_ns if is_set else min(device_only_ns, _with_batch_ns(rows, plain)),
        found[-1].pipeline_only_ns,
        step_ns,
        device_only_cpu_ns=found[-1].device_only_cpu_ns,
        pipeline_only_cpu_ns=found[-1].pipeline_only_cpu_ns,
        page_cache=found[-1].page_cache,
        busy_ns=_busy_ns(rows, plain & tables.valid(steps, "wait_ns")) if found[-1].of_calls else None,
        is_of_end=found[-1].time_ns >= int(tables.ints(steps, "end_ns").max()),
        mean_step_ns=float(rows.step_ns[plain].mean()) if is_set and times_vary else None,
    )


def _with_batch_ns(rows: StepRows, plain: NDArray[np.bool_]) -> float:
    """Return what a step took from the arrival of its batch to its result, the median over the plain ones, ns.

    The step alone cannot take longer than that. The few steps of a calibration do where the process was not warm yet.
    Where nobody knows when the results were there, it is the whole step.
    """
    busy_ns = _busy_ns(rows, plain)
    return float(np.median(rows.step_ns[plain])) if busy_ns is None else busy_ns


def _busy_ns(rows: StepRows, which: NDArray[np.bool_]) -> float | None:
    known = which & rows.is_divided
    return float(np.median(rows.compute_ns[known])) if known.any() else None


def without_first_pace(calibration: Calibration, first: PhaseTimes, later: PhaseTimes) -> Calibration:
    """Take out the pipeline alone where it has changed since: it was timed from its beginning, as the first epoch runs.

    It has where the job waits for another share of its steps than it did, or steps are faster than the pipeline was. What was timed
    after the last epoch, in whole passes, has not, but for steps that are faster on average.
    """
    alone_ns = calibration.pipeline_only_ns
    waits = first.wait_percent, later.wait_percent
    waits_alike = waits[0] is not None and waits[1] is not None and abs(waits[0] - waits[1]) < MODERATE_PERCENT
    steps_ns = later.mean_ns if calibration.is_of_end else calibration.step_ns
    if alone_ns is None or ((waits_alike or calibration.is_of_end) and alone_ns <= steps_ns):
        return calibration
    return replace(calibration, pipeline_only_ns=None, pipeline_only_cpu_ns=None)


def _measure(job: JobView) -> Calibration:
    found = job.tables
    return read_calibration(found.events, found.steps, rows=found.step_rows, times_vary=found.training.times_vary)


def _of_later(calibration: Calibration, view: LaterView) -> Calibration:
    return without_first_pace(calibration, view.first, view.later)


def _to_json(calibration: Calibration) -> Document:
    return {
        "device_only_ms": to_ms(calibration.device_only_ns),
        "pipeline_only_ms": to_ms(calibration.pipeline_only_ns),
        "step_ms": to_ms(calibration.step_ns),
        "utilisation_percent": calibration.utilisation_percent,
        "page_cache": calibration.page_cache or NO_PAGE_CACHE.to_json(),
    }


CALIBRATION = Analysis(Calibration, per_job=PerJob(_measure, NOT_CALIBRATED, later=_of_later), to_json=_to_json)
