"""What the app keeps in memory, bounded and keyed by a fingerprint, so that nothing goes stale."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from pipeline_lab.runs.store import RunFolder, RunStore, open_store
from pipeline_lab.runs.tables import STEPS, read_table
from pipeline_lab.units import NS_PER_MS

Fingerprint = tuple[int, int]


@dataclass(frozen=True)
class RunSummary:
    """Two numbers of a run for lists; None while it has no measured step.

    Attributes:
        step_ms: Median time from one step's start to the next one's.
        wait_percent: Share of that time that went into waiting for input.
    """

    step_ms: float | None
    wait_percent: float | None


def store() -> RunStore:
    """Open the run store; a store keeps nothing in memory, so this costs nothing."""
    return open_store()


def fingerprint(path: Path) -> Fingerprint:
    """Return a file's length and time of change in ns; zeros if there is none."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_size, found.st_mtime_ns)


def summary(folder: RunFolder) -> RunSummary:
    """Return a run's step time and wait share from its steps table."""
    return _summary(folder.steps, fingerprint(folder.steps))


@lru_cache(maxsize=20_000)
def _summary(path: Path, _fingerprint: Fingerprint) -> RunSummary:
    table = read_table(path, STEPS)
    measured = ~table.column("warmup").to_numpy()
    start, wait = (table.column(name).to_numpy()[measured] for name in ("start_ns", "wait_ns"))
    if len(start) < 2:
        return RunSummary(None, None)
    total_ns = float(start[-1] - start[0])
    step_ms = float(np.median(np.diff(start))) / NS_PER_MS
    return RunSummary(step_ms, 100.0 * float(wait[:-1].sum()) / total_ns if total_ns else None)
