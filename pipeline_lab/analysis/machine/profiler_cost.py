"""What the profiler itself cost the job: windows, capture gaps, flushes, slower steps."""

from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.intervals import IntArray, as_intervals, length_within
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, JobView, PerJob, as_it_is, to_ms
from pipeline_lab.analysis.declaring.job_events import JobEvents
from pipeline_lab.analysis.steps.job_steps import flushes
from pipeline_lab.analysis.steps.step_rows import StepRows, divide_time, plain_steps
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_events import WindowEvent

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


def measure_profiler_cost(
    events: JobEvents, steps: pa.Table, origin_ns: int, rows: StepRows | None = None
) -> ProfilerCost:
    """Compare steps inside and outside of windows.

    Args:
        events: The worker's events.
        steps: Of schema ``runs.run_tables.STEPS``.
        origin_ns: Zero of the diagnosis' axis, ns since the epoch.
        rows: What :func:`divide_time` returned for these steps, where it was called before.

    Raises:
        TraceIncompleteError: No window was recorded.
    """
    if not events.of(WindowEvent):
        raise TraceIncompleteError(NO_WINDOWS)
    rows = rows or divide_time(steps)
    period = rows.step_ns
    spans = as_intervals(rows.start_ns, rows.start_ns + period)
    plain = plain_steps(steps)
    flushing = plain & (length_within(flushes(events), spans) > 0)
    profiled = ~tables.bools(steps, "warmup") & (tables.ints(steps, "window") >= 0)
    return ProfilerCost(
        windows=_window_table(events, origin_ns),
        profiled_steps=int(profiled.sum()) if steps.num_rows else None,
        profiled_step_ns=_median(period, profiled),
        plain_step_ns=_median(period, plain & ~flushing),
        flushing_step_ns=_median(period, flushing),
    )


def _median(period: IntArray, chosen: NDArray[np.bool_]) -> float | None:
    return float(np.median(period[chosen])) if chosen.sum() >= FEWEST_STEPS else None


def _window_table(events: JobEvents, origin_ns: int) -> pa.Table:
    column = partial(events.column, WindowEvent)
    count = len(events.of(WindowEvent))
    placed = {name: column(noted) for name, noted in _TIMES.items()}
    in_order = tables.build(
        WINDOW_TABLE,
        count,
        window=None,
        name=events.texts(WindowEvent, "name"),
        shortened=column("shortened").values.astype(np.bool_),
        rss_growth_bytes=column("growth_bytes"),
        **{name: time._replace(values=time.values - origin_ns) for name, time in placed.items()},
        **{name: column(name) for name in _AS_NOTED},
    )
    return tables.replace_column(tables.concat(WINDOW_TABLE, [in_order]), "window", np.arange(count))


_TIMES = {"start_ns": "started_ns", "stop_ns": "stopped_ns", "flushed_ns": "flushed_ns"}
_AS_NOTED = ("first_step", "last_step", "start_cost_ns", "stop_cost_ns", "size_bytes")


def _measure(job: JobView) -> ProfilerCost:
    return measure_profiler_cost(job.tables.events, job.tables.steps, job.origin_ns, job.tables.step_rows)


def _to_json(cost: ProfilerCost) -> Document:
    return {
        "windows": cost.windows.num_rows,
        "profiled_steps": cost.profiled_steps,
        "profiled_step_ms": to_ms(cost.profiled_step_ns),
        "plain_step_ms": to_ms(cost.plain_step_ns),
        "flushing_step_ms": to_ms(cost.flushing_step_ns),
    }


PROFILER_COST = Analysis(ProfilerCost, per_job=PerJob(_measure, NO_WINDOWS, later=as_it_is), to_json=_to_json)
