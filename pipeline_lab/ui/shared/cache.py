"""What the app keeps in memory, bounded and keyed by a fingerprint, so that nothing goes stale."""

import contextlib
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_lab.analysis.causes import VerdictClass
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.diagnosis.saved import ANALYSIS_VERSION, DOCUMENT, SavedDiagnosis
from pipeline_lab.analysis.diagnosis.storage import write_json
from pipeline_lab.analysis.steps import job_steps
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import PipelineLabError, StoreError, TraceIncompleteError, Unavailable
from pipeline_lab.folders import cache_folder
from pipeline_lab.options.race_options import read_recorded_race
from pipeline_lab.report.subjects.tune_report import answer_search
from pipeline_lab.runs.run_events import RaceEvent, read_events
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.run_tables import SAMPLES, STEPS, read_table
from pipeline_lab.runs.store import RunStore, open_store
from pipeline_lab.statistics.outcome import Outcome
from pipeline_lab.tuning.opened_search import read_search
from pipeline_lab.tuning.search_result import change_words
from pipeline_lab.ui.serving import access
from pipeline_lab.units import NS_PER_MS, NS_PER_S

Fingerprint = tuple[int, int]
SUMMARIES = "summaries.json"
MOST_SUMMARIES = 20_000
FIRST_ROWS = 250
"""Runs that a list begins with: their summaries take some ms each the first time."""
COURSE_POINTS = 24
SETTLED_NS = 60 * NS_PER_S
"""A file unchanged for this long is no longer being written."""


@dataclass(frozen=True)
class RunSummary:
    """What lists say of a run; numbers are None while it has no measured step.

    Attributes:
        step_ms: Median time from one step's start to the next; for logs, and jobs whose steps were not timed, the median
            recorded step.
        wait_percent: Share of that time spent waiting for input.
        verdict: What limits it, as its saved diagnosis says, how its race stands, or what its search found; empty where that is not known.
        course_ms: Step time over the run, the median of each of at most :data:`COURSE_POINTS` stretches.
        gain: Of a race or a search whose best candidate is faster, by how much: ``24 % less time per step``; empty for others.
    """

    step_ms: float | None
    wait_percent: float | None
    verdict: str = ""
    course_ms: tuple[float, ...] = ()
    gain: str = ""


def store() -> RunStore:
    """Open the run store; this is cheap, because a store keeps nothing in memory."""
    return open_store(locked=access.why_read_only())


def fingerprint_file(path: Path) -> Fingerprint:
    """Return a file's length and time of change in ns; zeros if there is none."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_size, found.st_mtime_ns)


def read_ahead() -> None:
    """Read the store as the list of runs shows it first, so that nobody who opens a page waits for thousands of records."""
    opened = store()
    newest = opened.runs()[:FIRST_ROWS]
    summaries([opened.folder(record.id) for record in newest])


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
def _kept_in(file: Path) -> dict[str, list[Any]]:
    """Return the fields of summaries by path and fingerprints of what they were read from; all calls share them."""
    with contextlib.suppress(OSError, ValueError):
        document = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(document, dict):
            return document
    return {}


_settled: dict[Path, RunSummary] = {}
"""Whole summaries of runs that no longer change, so that a list of thousands need not ask the disk for each of them."""


def _find(folder: RunFolder, kept: dict[str, list[Any]]) -> RunSummary:
    if (settled := _settled.get(folder.path)) is not None:
        return settled
    steps, told = folder.steps, _source_of_verdict(folder)
    has_steps = steps.exists()
    prints = (fingerprint_file(steps), fingerprint_file(told))
    key = f"{ANALYSIS_VERSION} {folder.path} {prints}"
    with contextlib.suppress(KeyError, TypeError, ValueError):  # not kept, or damaged
        step_ms, wait_percent, verdict, course, gain = kept[key]
        return _note(folder, RunSummary(step_ms, wait_percent, verdict, tuple(course), gain))
    result = _of_run(steps, prints[0]) if has_steps else _of_traces(folder.path, prints[1])
    verdict, gain = _verdict(told, prints[1])
    result = replace(result, verdict=verdict, gain=gain)
    newest_ns = max(changed_ns for _, changed_ns in prints)
    if 0 < newest_ns < time.time_ns() - SETTLED_NS:
        kept[key] = [result.step_ms, result.wait_percent, result.verdict, result.course_ms, result.gain]
        _note(folder, result)
    return result


def _source_of_verdict(folder: RunFolder) -> Path:
    """Return the file from which the verdict comes: of a race, of a search, or of any other run."""
    if folder.blocks.exists():
        return folder.events
    return folder.history if folder.history.exists() else folder.analysis / DOCUMENT


def _note(folder: RunFolder, found: RunSummary) -> RunSummary:
    """Remember a summary that lacks nothing, of a run that is over: one without a verdict gets it once the run is analyzed."""
    if found.verdict and found.step_ms is not None and len(_settled) < MOST_SUMMARIES:
        with contextlib.suppress(StoreError):
            if not read_record(folder).status.state.is_live:
                _settled[folder.path] = found
    return found


@lru_cache(maxsize=20_000)
def _verdict(path: Path, _fingerprint: Fingerprint) -> tuple[str, str]:
    """Return the verdict of a saved diagnosis, the outcomes of a race's candidates, or that of a search, and what was gained, in words."""
    with contextlib.suppress(OSError, ValueError, AttributeError, PipelineLabError):
        if path.name == DOCUMENT:
            kept = str(json.loads(path.read_text(encoding="utf-8")).get("verdict", ""))
            return (VerdictClass(kept).label if kept in set(VerdictClass) else kept), ""
        if path == RunFolder(path.parent).history:
            tuning = read_search(RunFolder(path.parent))
            if tuning.ended is None:
                return "", ""
            label = answer_search(tuning).label
            return label, _gain([tuning.ended.ratio], "step") if label == Outcome.FASTER else ""
        races = [event for event in read_events(path) if isinstance(event, RaceEvent)]
        standings = [standing for event in races[-1:] for standing in event.standings]
        outcomes = ", ".join(dict.fromkeys(str(standing["outcome"]) for standing in standings))
        faster = [standing["ratio"] for standing in standings if standing["outcome"] == Outcome.FASTER]
        return outcomes, _gain(faster, read_recorded_race(read_record(RunFolder(path.parent)).options or {}).per)
    return "", ""


def _gain(ratios: Sequence[float | None], per: str) -> str:
    """Say what the fastest of those that are faster saves."""
    known = [ratio for ratio in ratios if ratio is not None]
    return f"{change_words(min(known))} time per {per}" if known else ""


@lru_cache(maxsize=20_000)
def _of_run(path: Path, _fingerprint: Fingerprint) -> RunSummary:
    try:
        steps = job_steps.measure_job_steps(read_table(path, STEPS), tables.empty(SAMPLES.schema), 0)
    except TraceIncompleteError:
        return RunSummary(None, None)
    times_ms = np.asarray(steps.table.column("step_ns").to_numpy(), np.float64)[-steps.count :] / NS_PER_MS
    parts = np.array_split(times_ms, min(COURSE_POINTS, len(times_ms)))
    course = tuple(round(float(np.median(part)), 3) for part in parts)
    return RunSummary(steps.median_ns / NS_PER_MS, steps.wait_percent, course_ms=course)


@lru_cache(maxsize=20_000)
def _of_traces(path: Path, _fingerprint: Fingerprint) -> RunSummary:
    diagnosis = SavedDiagnosis(path).load_latest()
    if diagnosis is None or isinstance(diagnosis.steps, Unavailable):
        return RunSummary(None, None)
    stalls = diagnosis.input_stalls
    waited = None if isinstance(stalls, Unavailable) else stalls.wait_percent
    return RunSummary(float(np.median(diagnosis.steps.training_step_ns)) / NS_PER_MS, waited)
