"""Diagnoses for the app: loaded from the run folder; a process of its own computes those that are missing or stale.

The app parses no trace itself. At most one analysis per run is started here; a thread waits for each, so that none
stays behind as a zombie.
"""

import contextlib
import subprocess
import threading
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from pipeline_lab.analysis import job_steps
from pipeline_lab.analysis.job_steps import JobSteps
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.runtime import child_environment, module_command
from pipeline_lab.runs.store import RunFolder
from pipeline_lab.runs.tables import SAMPLES, STEPS, read_table
from pipeline_lab.ui.cache import Fingerprint, fingerprint
from pipeline_lab.ui.text import escape

if TYPE_CHECKING:
    from pipeline_lab.analysis.saved import SavedDiagnosis

POLL_S = 0.5
RETRY_S = 5.0
"""An analysis that ended without an answer (another process was at it) is started again after this time."""
_ANY = "any"
"""Stands for inputs that never change."""


@dataclass(frozen=True)
class Attempt:
    """One analysis that this app started."""

    process: subprocess.Popen[bytes]
    started_s: float

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    @property
    def has_failed(self) -> bool:
        return self.process.poll() not in (None, 0)


_attempts: dict[Path, Attempt] = {}
_guard = threading.Lock()


def saved(folder: RunFolder) -> Diagnosis | None:
    """Return what is known of a working run by now; None if no window is analysed yet."""
    return _place(folder).load_latest()


def follow(folder: RunFolder) -> None:
    """See to it that the windows of a working run are analysed as they land."""
    _start(folder, "--follow")


def live_steps(folder: RunFolder) -> JobSteps | None:
    """Return the steps that a working run has noted so far, or None before the first measured one."""
    return _steps(folder.steps, fingerprint(folder.steps))


def wait_for(folder: RunFolder, *, is_sample: bool) -> Diagnosis | None:
    """Return a run's diagnosis; until it is there, or if there can be none, say so and return None.

    Args:
        folder: A run that is over.
        is_sample: It never changes, so whatever was saved with it holds.
    """
    from pipeline_lab.analysis.saved import fingerprint as fingerprint_inputs

    with contextlib.suppress(LookupError):
        return _load(folder.path, _ANY if is_sample else fingerprint_inputs(folder.path))
    _show_waiting(folder)
    return None


@st.fragment(run_every=POLL_S)
def _show_waiting(folder: RunFolder) -> None:
    place = _place(folder)
    if place.is_fresh:
        st.rerun()
    attempt = _start(folder)
    if attempt.has_failed:
        st.info(escape(place.error or "The analysis of this run ended without saying why."))
        if st.button("Try again", key="analyse-again"):
            _forget(folder)
        return
    done = place.progress
    text = f"Analysing window {done.done + 1} of {done.total}" if done else "Analysing the run"
    st.progress(done.done / done.total if done and done.total else 0.0, text=text)


def _start(folder: RunFolder, *options: str) -> Attempt:
    with _guard:
        attempt = _attempts.get(folder.path)
        if attempt is not None and not _may_retry(attempt):
            return attempt
        process = subprocess.Popen(
            module_command("pipeline_lab.analysis", str(folder.path), *options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=child_environment(),
            start_new_session=True,
        )
        threading.Thread(target=process.wait, name=f"analysis of {folder.id}", daemon=True).start()
        _attempts[folder.path] = attempt = Attempt(process, time.monotonic())
        return attempt


def _may_retry(attempt: Attempt) -> bool:
    return not attempt.is_running and not attempt.has_failed and time.monotonic() - attempt.started_s > RETRY_S


def _forget(folder: RunFolder) -> None:
    with _guard:
        _attempts.pop(folder.path, None)


def _place(folder: RunFolder) -> "SavedDiagnosis":
    from pipeline_lab.analysis.saved import SavedDiagnosis  # its imports take as long as the rest of the app's

    return SavedDiagnosis(folder.path)


@lru_cache(maxsize=8)
def _load(path: Path, inputs: str) -> Diagnosis:
    """Load what was saved for these inputs; a failure is not cached, because it may be there the next time."""
    place = _place(RunFolder(path))
    found = place.load_latest() if inputs == _ANY else place.load()
    if found is None:
        raise LookupError(path)
    return found


@lru_cache(maxsize=4)
def _steps(path: Path, _fingerprint: Fingerprint) -> JobSteps | None:
    table = read_table(path, STEPS)
    if not table.num_rows:
        return None
    with contextlib.suppress(TraceIncompleteError):
        return job_steps.measure(table, SAMPLES.empty_table(), table.column("start_ns")[0].as_py())
    return None
