"""The clock of the GPU over a run, and whether heat or power held it back."""

from dataclasses import asdict

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Analysis, PerJob
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError

NO_CLOCKS = "The clock of a GPU is sampled while a job of Pipeline Lab trains on one whose driver tells it (NVML); there was none."


@dataclass(frozen=True)
class GpuClocks:
    """What was sampled.

    Attributes:
        samples: Looks at the clock.
        lowest_mhz, median_mhz, highest_mhz: Of the multiprocessors' clock.
        slowed_percent: Share of the looks at which heat or power held the GPU back, percent; None where the driver does
            not tell.
    """

    samples: int
    lowest_mhz: int
    median_mhz: int
    highest_mhz: int
    slowed_percent: float | None


def measure_clocks(resources: pa.Table) -> GpuClocks:
    """Sum up the samples of a run.

    Args:
        resources: Of schema ``runs.run_tables.RESOURCES``.

    Raises:
        TraceIncompleteError: The clock was not sampled.
    """
    clock_mhz = tables.floats(resources, "gpu_clock_mhz")
    clock_mhz = clock_mhz[np.isfinite(clock_mhz)]
    if not len(clock_mhz):
        raise TraceIncompleteError(NO_CLOCKS)
    slowed = tables.bools(resources, "gpu_slowed")[tables.valid(resources, "gpu_slowed")]
    return GpuClocks(
        samples=len(clock_mhz),
        lowest_mhz=int(clock_mhz.min()),
        median_mhz=int(np.median(clock_mhz)),
        highest_mhz=int(clock_mhz.max()),
        slowed_percent=float(100.0 * slowed.mean()) if len(slowed) else None,
    )


GPU_CLOCKS = Analysis(
    GpuClocks, per_job=PerJob(lambda job: measure_clocks(job.tables.resources), NO_CLOCKS), to_json=asdict
)
