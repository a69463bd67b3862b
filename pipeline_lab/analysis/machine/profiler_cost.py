"""What the profiler itself cost the job: windows, capture gaps, flushes, slower steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.intervals import IntArray, length_within
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, JobView, PerJob, as_it_is, to_ms
from pipeline_lab.analysis.steps.job_steps import divide_time, flushes, plain_steps
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_events import Event, WindowEvent

WINDOW_TABLE = pa.schema(
    [
        ("window", pa.int32()),
        ("name", pa.string()),
        ("first_step", pa.int64()),  # null, like costs and memory below, where it is not known
        ("last_step", pa.int64()),
        ("start_ns", pa.int64()),  # on the diagnosis' axis
        ("stop_ns", pa.int64()),
        ("flushed_ns", pa.int64()),
        ("start_cost_ns", pa.int64()),  # training thread held to open the window
        ("stop_cost_ns", pa.int64()),
        ("size_bytes", pa.int64()),
        ("rss_growth_bytes", pa.int64()),
        ("shortened", pa.bool_()),
    ]
)
"""One row per window."""

NO_WINDOWS = (
    "What the profiler cost is only known for runs of Pipeline Lab that recorded at least one window; launch the job "
    "with `pipeline-lab run` and profiling on."
)
FEWEST_STEPS = 3


@dataclass(frozen=True, eq=False)
class ProfilerCost:
    """The profiler's price.

    Attributes:
        windows: One row per window, :data:`WINDOW_TABLE`.
        profiled_steps: Steps inside windows; None where the job did not time its steps.
        profiled_step_ns, plain_step_ns, flushing_step_ns: Median step inside windows, outside, and during a flush;
            None where there were too few.
    """

    windows: pa.Table
    profiled_steps: int | None
    profiled_step_ns: float | None
    plain_step_ns: float | None
    flushing_step_ns: float | None


def measure_profiler_cost(events: Sequence[Event], steps: pa.Table, origin_ns: int) -> ProfilerCost:
    """Compare steps inside and outside of windows.

    Args:
        events: The worker's events.
        steps: Of schema ``runs.run_tables.STEPS``.
        origin_ns: Zero of the diagnosis' axis, ns since the epoch.

    Raises:
        TraceIncompleteError: No window was recorded.
    """
    windows = sorted(_windows(events), key=lambda window: window.started_ns)
    if not windows:
        raise TraceIncompleteError(NO_WINDOWS)
    rows = divide_time(steps)
    period = rows.step_ns
    spans = np.stack((rows.start_ns, rows.start_ns + period), axis=1)
    flushing = plain_steps(steps) & (length_within(flushes(events), spans) > 0)
    profiled = ~tables.bools(steps, "warmup") & (tables.ints(steps, "window") >= 0)
    return ProfilerCost(
        windows=_window_table(windows, origin_ns),
        profiled_steps=int(profiled.sum()) if steps.num_rows else None,
        profiled_step_ns=_median(period, profiled),
        plain_step_ns=_median(period, plain_steps(steps) & ~flushing),
        flushing_step_ns=_median(period, flushing),
    )


def _windows(events: Sequence[Event]) -> list[WindowEvent]:
    return [event for event in events if isinstance(event, WindowEvent)]


def _median(period: IntArray, chosen: NDArray[np.bool_]) -> float | None:
    return float(np.median(period[chosen])) if chosen.sum() >= FEWEST_STEPS else None


def _window_table(windows: Sequence[WindowEvent], origin_ns: int) -> pa.Table:
    return tables.build(
        WINDOW_TABLE,
        len(windows),
        window=list(range(len(windows))),
        name=[window.name for window in windows],
        first_step=_known([window.first_step for window in windows]),
        last_step=_known([window.last_step for window in windows]),
        start_ns=[window.started_ns - origin_ns for window in windows],
        stop_ns=[window.stopped_ns - origin_ns for window in windows],
        flushed_ns=[window.flushed_ns - origin_ns for window in windows],
        start_cost_ns=_known([window.start_cost_ns for window in windows]),
        stop_cost_ns=_known([window.stop_cost_ns for window in windows]),
        size_bytes=[window.size_bytes for window in windows],
        rss_growth_bytes=_known([window.growth_bytes for window in windows]),
        shortened=[window.shortened for window in windows],
    )


def _known(values: Sequence[int | None]) -> "np.ma.MaskedArray[Any, Any]":
    return np.ma.masked_array([value or 0 for value in values], [value is None for value in values], dtype=np.int64)


def _measure(job: JobView) -> ProfilerCost:
    return measure_profiler_cost(job.tables.events, job.tables.steps, job.origin_ns)


def _to_json(cost: ProfilerCost) -> Document:
    return {
        "windows": cost.windows.num_rows,
        "profiled_steps": cost.profiled_steps,
        "profiled_step_ms": to_ms(cost.profiled_step_ns),
        "plain_step_ms": to_ms(cost.plain_step_ns),
        "flushing_step_ms": to_ms(cost.flushing_step_ns),
    }


PROFILER_COST = Analysis(ProfilerCost, per_job=PerJob(_measure, NO_WINDOWS, later=as_it_is), to_json=_to_json)
