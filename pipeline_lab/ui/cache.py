"""What the app keeps in memory, bounded and keyed by a fingerprint, so that nothing goes stale."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from pipeline_lab.analysis import job_steps, tables
from pipeline_lab.analysis.saved import DOCUMENT, SavedDiagnosis
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from pipeline_lab.runs.store import RunFolder, RunStore, open_store
from pipeline_lab.runs.tables import SAMPLES, STEPS, read_table
from pipeline_lab.ui import changes
from pipeline_lab.units import NS_PER_MS

Fingerprint = tuple[int, int]


@dataclass(frozen=True)
class RunSummary:
    """Two numbers of a run for lists; None while it has no measured step.

    Attributes:
        step_ms: Median time from one step's start to the next one's; of a job that the lab did not launch, whose steps
            nobody timed, and of a log the median recorded step.
        wait_percent: Share of that time that went into waiting for input.
    """

    step_ms: float | None
    wait_percent: float | None


def store() -> RunStore:
    """Open the run store; a store keeps nothing in memory, so this costs nothing."""
    return open_store(locked=changes.problem())


def fingerprint(path: Path) -> Fingerprint:
    """Return a file's length and time of change in ns; zeros if there is none."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_size, found.st_mtime_ns)


def summary(folder: RunFolder) -> RunSummary:
    """Return step time and wait share: from the steps table where there is one, else from the saved diagnosis."""
    if folder.steps.exists():
        return _of_run(folder.steps, fingerprint(folder.steps))
    return _of_traces(folder.path, fingerprint(folder.analysis / DOCUMENT))


@lru_cache(maxsize=20_000)
def _of_run(path: Path, _fingerprint: Fingerprint) -> RunSummary:
    try:
        steps = job_steps.measure(read_table(path, STEPS), tables.empty(SAMPLES), 0)
    except TraceIncompleteError:
        return RunSummary(None, None)
    waited = 100.0 * steps.wait_total_ns / steps.total_ns if steps.total_ns else None
    return RunSummary(steps.median_ns / NS_PER_MS, waited)


@lru_cache(maxsize=20_000)
def _of_traces(path: Path, _fingerprint: Fingerprint) -> RunSummary:
    diagnosis = SavedDiagnosis(path).load_latest()
    if diagnosis is None or isinstance(diagnosis.steps, Unavailable):
        return RunSummary(None, None)
    stalls = diagnosis.input_stalls
    waited = None if isinstance(stalls, Unavailable) else stalls.wait_percent
    return RunSummary(float(np.median(diagnosis.steps.training_step_ns)) / NS_PER_MS, waited)
