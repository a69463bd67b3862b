"""The job's memory over time, with the profile windows and their flushes, beside what its data takes on disk."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.activity.intervals import IntArray, contains
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, JobView, PerJob
from pipeline_lab.analysis.declaring.job_events import JobEvents
from pipeline_lab.analysis.steps.job_steps import flushes
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.runs.run_events import WindowEvent

if TYPE_CHECKING:
    from pipeline_lab.analysis.results import Results

MEMORY_TABLE = pa.schema([("time_ns", pa.int64()), ("rss_bytes", pa.int64()), ("flushing", pa.bool_())])
"""Process memory over time, on the diagnosis' axis; at most 4,000 rows, each the largest of its stretch of time."""

NO_MEMORY = "The job's memory is only known for runs of Pipeline Lab; launch the job with `pipeline-lab run` to have it sampled."
MAX_ROWS = 4_000


@dataclass(frozen=True, eq=False)
class Memory:
    """Process memory.

    Attributes:
        process_peak_bytes: Largest resident size seen.
        process_start_bytes: Resident size at the first sample.
        table: Over time, :data:`MEMORY_TABLE`.
        data_bytes: Size of the data on disk, tables beside the files included; None where it is not known, or Python
            makes the examples.
    """

    process_peak_bytes: int
    process_start_bytes: int
    table: pa.Table
    data_bytes: int | None = None


def measure_memory(
    steps: pa.Table, resources: pa.Table, events: JobEvents, origin_ns: int, data: Sequence[DataFile] = ()
) -> Memory:
    """Join what was sampled by the clock with what each step noted.

    Args:
        steps: Of schema ``runs.run_tables.STEPS``.
        resources: Of schema ``runs.run_tables.RESOURCES``.
        events: The worker's events, for the flushes.
        origin_ns: Zero of the diagnosis' axis, ns since the epoch.
        data: Everything that the job reads.

    Raises:
        TraceIncompleteError: Nothing was sampled yet.
    """
    time_ns = np.concatenate((tables.ints(resources, "time_ns"), tables.ints(steps, "end_ns")))
    rss = np.concatenate((tables.ints(resources, "rss_bytes"), tables.ints(steps, "rss_bytes")))
    if not len(time_ns):
        raise TraceIncompleteError(NO_MEMORY)
    order = np.argsort(time_ns, kind="stable")
    time_ns, rss = time_ns[order], rss[order]
    peaks = events.column(WindowEvent, "rss_peak_bytes").known
    kept = _largest_of_each_stretch(rss)
    return Memory(
        process_peak_bytes=max(int(rss.max()), int(peaks.max(initial=0))),
        process_start_bytes=int(rss[0]),
        table=tables.build(
            MEMORY_TABLE,
            len(kept),
            time_ns=time_ns[kept] - origin_ns,
            rss_bytes=rss[kept],
            flushing=contains(flushes(events), time_ns[kept]),
        ),
        data_bytes=sum(file.size_bytes for file in data) or None,
    )


def _largest_of_each_stretch(values: IntArray) -> IntArray:
    """Return at most :data:`MAX_ROWS` row numbers: the largest value of each of as many stretches."""
    if len(values) <= MAX_ROWS:
        return np.arange(len(values))
    bounds = -(-np.arange(MAX_ROWS + 1) * len(values) // MAX_ROWS)  # rounded up
    largest = np.repeat(np.maximum.reduceat(values, bounds[:-1]), np.diff(bounds))
    rows = np.flatnonzero(values == largest)
    return rows[np.searchsorted(rows, bounds[1:]) - 1]


def _measure(job: JobView) -> Memory:
    found = job.tables
    return measure_memory(found.steps, found.resources, found.events, job.origin_ns, [*found.files, *found.data_tables])


def _to_json(results: "Results") -> Document:
    """Write the process's memory and that of TensorFlow's allocators; either may be missing."""
    memory, allocators = results.memory, results.allocators
    if isinstance(memory, Unavailable) and isinstance(allocators, Unavailable):
        return memory.to_json()
    process = memory.to_json() if isinstance(memory, Unavailable) else None
    return {
        "process_peak_bytes": memory.process_peak_bytes if isinstance(memory, Memory) else process,
        "process_start_bytes": memory.process_start_bytes if isinstance(memory, Memory) else process,
        "data_bytes": memory.data_bytes if isinstance(memory, Memory) else process,
        "allocators": allocators.to_json()
        if isinstance(allocators, Unavailable)
        else [
            {"host": found.host, "name": found.name, "peak_bytes": found.peak_bytes} for found in allocators.allocators
        ],
    }


MEMORY = Analysis(Memory, per_job=PerJob(_measure, NO_MEMORY), to_json_with=_to_json)
