"""One job of the flush benchmark, and what its tables say."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.run_events import WindowEvent, read_events
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import RESOURCES, STEPS, read_table
from pipeline_lab.runs.store import RunStore
from pipeline_lab.units import NS_PER_S

IntArray = np.ndarray[Any, np.dtype[np.int64]]
FloatArray = np.ndarray[Any, np.dtype[np.float64]]

STRETCH_STEPS = 50
"""Long enough for a window and its flush."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """What one job left.

    Attributes:
        starts_ns, ends_ns: Of each step after the warm-up, shape (steps,).
        window: Number of the window that each step was in, -1 for none, shape (steps,).
        peak_bytes: Most resident memory.
        windows: The windows that reached the disk.
    """

    starts_ns: IntArray
    ends_ns: IntArray
    window: IntArray
    peak_bytes: int
    windows: tuple[WindowEvent, ...]

    @property
    def steps_per_second(self) -> float:
        return self.starts_ns.size / float(self.ends_ns[-1] - self.starts_ns[0]) * NS_PER_S

    @property
    def longest_stop_ns(self) -> int:
        """The longest time that the training thread spent between two steps."""
        return int((self.starts_ns[1:] - self.ends_ns[:-1]).max())

    @property
    def longest_flush_ns(self) -> int:
        return max((event.flushed_ns - event.stopped_ns for event in self.windows), default=0)

    @property
    def trace_bytes(self) -> int:
        return sum(event.size_bytes for event in self.windows)

    @property
    def median_step_ns(self) -> float:
        return self._median((self.window == -1) & ~self._is_flushing)

    @property
    def median_profiled_step_ns(self) -> float:
        return self._median(self.window >= 0)

    @property
    def median_flushing_step_ns(self) -> float:
        return self._median((self.window == -1) & self._is_flushing)

    def stretches_ns(self) -> tuple[FloatArray, FloatArray]:
        """Return the time of each stretch that begins with a window, and of those beside it that have none.

        A stretch with a window is compared with the mean of the stretches before and after it, as far as they exist.
        """
        bounds = np.append(self.starts_ns, self.ends_ns[-1])[::STRETCH_STEPS]
        lengths = np.diff(bounds).astype(np.float64)
        lengths = lengths[: lengths.size // 2 * 2]
        with_window, without = lengths[0::2], lengths[1::2]
        before = np.concatenate([without[:1], without[:-1]])
        return with_window, (before + without) / 2

    @property
    def _is_flushing(self) -> Any:
        is_flushing = np.zeros(self.starts_ns.size, dtype=bool)
        for event in self.windows:
            is_flushing |= (self.ends_ns > event.stopped_ns) & (self.starts_ns < event.flushed_ns)
        return is_flushing

    def _median(self, chosen: Any) -> float:
        durations = (self.ends_ns - self.starts_ns)[chosen]
        return float(np.median(durations)) if durations.size else float("nan")


def job_options(steps: int, batch: int, profiling: ProfilingOptions) -> RunOptions:
    """Return the `optimised` preset with other steps, batch and profiling."""
    document = find_preset("optimised").options.model_dump(mode="json")
    document["training"] |= {"steps": steps, "warmup_steps": 20, "calibrate": False}
    document["profiling"] = profiling.model_dump(mode="json")
    for stage in document["pipeline"]["stages"]:
        if stage["stage"] == "batch":
            stage["size"] = batch
    return read_options(document)


def alternating_options(steps: int, batch: int) -> RunOptions:
    """Return the job with default windows, each at the start of one stretch and followed by one without a window."""
    return job_options(steps, batch, ProfilingOptions(every_steps=2 * STRETCH_STEPS))


def run_job(store: Path, options: RunOptions) -> Recorded:
    """Run a job in a worker of its own."""
    folder = RunStore(store).create(options, render_source(options))
    subprocess.run([sys.executable, "-m", "pipeline_lab.worker", str(folder.path)], check=True)
    return _read(folder)


def _read(folder: RunFolder) -> Recorded:
    steps = read_table(folder.steps, STEPS)
    steps = steps.filter([not is_warmup for is_warmup in steps["warmup"].to_pylist()])
    windows = tuple(event for event in read_events(folder.events) if isinstance(event, WindowEvent))
    rss = [
        *read_table(folder.resources, RESOURCES)["rss_bytes"].to_pylist(),
        *steps["rss_bytes"].to_pylist(),
        *(event.rss_peak_bytes for event in windows),
    ]
    return Recorded(
        steps["start_ns"].to_numpy(),
        steps["end_ns"].to_numpy(),
        steps["window"].to_numpy(),
        max(rss),
        windows,
    )
