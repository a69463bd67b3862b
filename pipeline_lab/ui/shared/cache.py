"""What the app keeps in memory, bounded and keyed by a fingerprint, so that nothing goes stale."""

import contextlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.diagnosis.saved import ANALYSIS_VERSION, DOCUMENT, SavedDiagnosis, cache_folder
from pipeline_lab.analysis.diagnosis.storage import write_json
from pipeline_lab.analysis.steps import job_steps
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import SAMPLES, STEPS, read_table
from pipeline_lab.runs.store import RunStore, open_store
from pipeline_lab.ui.serving import access
from pipeline_lab.units import NS_PER_MS, NS_PER_S

Fingerprint = tuple[int, int]
SUMMARIES = "summaries.json"
MOST_SUMMARIES = 20_000
SETTLED_NS = 60 * NS_PER_S
"""A file unchanged for this long is no longer being written."""


@dataclass(frozen=True)
class RunSummary:
    """Two numbers of a run for lists; None while it has no measured step.

    Attributes:
        step_ms: Median time from one step's start to the next; for logs, and jobs whose steps were not timed, the median
            recorded step.
        wait_percent: Share of that time spent waiting for input.
    """

    step_ms: float | None
    wait_percent: float | None


def store() -> RunStore:
    """Open the run store; this is cheap, because a store keeps nothing in memory."""
    return open_store(locked=access.why_read_only())


def fingerprint(path: Path) -> Fingerprint:
    """Return a file's length and time of change in ns; zeros if there is none."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_size, found.st_mtime_ns)


def summary(folder: RunFolder) -> RunSummary:
    """Return step time and wait share: from the steps table where there is one, else from the saved diagnosis."""
    return summaries([folder])[0]


def summaries(folders: Sequence[RunFolder]) -> list[RunSummary]:
    """Return the summaries of some runs.

    Reading a run takes some ms, so summaries of finished runs are saved on disk for the next start.
    """
    file = cache_folder() / SUMMARIES
    kept = _kept_in(file)
    known = len(kept)
    found = [_find(folder, kept) for folder in folders]
    if len(kept) > known:
        newest = dict(list(kept.items())[-MOST_SUMMARIES:])
        with contextlib.suppress(OSError):  # the next start reads the runs again
            file.parent.mkdir(parents=True, exist_ok=True)
            write_json(file, newest)
    return found


@lru_cache(maxsize=4)
def _kept_in(file: Path) -> dict[str, list[float | None]]:
    """Return step time and wait share by path and fingerprint of what they were read from; all calls share them."""
    with contextlib.suppress(OSError, ValueError):
        document = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(document, dict):
            return document
    return {}


def _find(folder: RunFolder, kept: dict[str, list[float | None]]) -> RunSummary:
    read = folder.steps if folder.steps.exists() else folder.analysis / DOCUMENT
    found = fingerprint(read)
    key = f"{ANALYSIS_VERSION} {read} {found[0]} {found[1]}"
    with contextlib.suppress(KeyError, TypeError, ValueError):  # not kept, or damaged
        step_ms, wait_percent = kept[key]
        return RunSummary(step_ms, wait_percent)
    result = _of_run(read, found) if read == folder.steps else _of_traces(folder.path, found)
    if 0 < found[1] < time.time_ns() - SETTLED_NS:
        kept[key] = [result.step_ms, result.wait_percent]
    return result


@lru_cache(maxsize=20_000)
def _of_run(path: Path, _fingerprint: Fingerprint) -> RunSummary:
    try:
        steps = job_steps.measure_job_steps(read_table(path, STEPS), tables.empty(SAMPLES.schema), 0)
    except TraceIncompleteError:
        return RunSummary(None, None)
    return RunSummary(steps.median_ns / NS_PER_MS, steps.wait_percent)


@lru_cache(maxsize=20_000)
def _of_traces(path: Path, _fingerprint: Fingerprint) -> RunSummary:
    diagnosis = SavedDiagnosis(path).load_latest()
    if diagnosis is None or isinstance(diagnosis.steps, Unavailable):
        return RunSummary(None, None)
    stalls = diagnosis.input_stalls
    waited = None if isinstance(stalls, Unavailable) else stalls.wait_percent
    return RunSummary(float(np.median(diagnosis.steps.training_step_ns)) / NS_PER_MS, waited)
