"""Diagnoses for the app: loaded from the run folder; a separate process computes missing or stale ones.

The app parses no trace itself. A thread waits for each process, so that none becomes a zombie.
"""

import contextlib
import subprocess
import threading
import time
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.steps import job_steps
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.errors import StoreError, TraceIncompleteError
from pipeline_lab.runs.launch.runtime import child_environment, module_command
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.run_tables import SAMPLES, STEPS, read_table
from pipeline_lab.ui.shared.cache import Fingerprint, fingerprint_file
from pipeline_lab.ui.shared.text import prose

if TYPE_CHECKING:
    from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis

FOLLOW = "--follow"
POLL_S = 0.5
LAST_LOOK_S = 10.0
"""How long what followed a run may take once the run is over; it has the lowest priority."""
RETRY_S = 5.0
"""An analysis that ended without a result (another process was running it) is restarted after this time."""


MOST_AT_ONCE = 2
"""Analyses of runs that are over, whoever opens how many; one takes up to two cores and some hundred MB."""
_turns = threading.BoundedSemaphore(MOST_AT_ONCE)


def _is_live(folder: RunFolder) -> bool:
    try:
        return read_record(folder).status.state.is_live
    except StoreError:
        return False


class Attempt:
    """One analysis that this app started, or that waits for its turn."""

    def __init__(self, folder: RunFolder, options: tuple[str, ...]) -> None:
        self.started_s = time.monotonic()
        self._exit_code: int | None = None
        self._folder, self._options = folder, options
        threading.Thread(target=self._run, name=f"analysis of {folder.id}", daemon=True).start()

    def _run(self) -> None:
        code = 1
        try:
            code = self._follow() if FOLLOW in self._options else self._analyze(*self._options)
        finally:
            self._exit_code = code

    def _follow(self) -> int:
        """Follow the run until it is over; whoever waits for its result then does not wait until other programs leave a turn."""
        process = self._start(FOLLOW)
        while process.poll() is None and _is_live(self._folder):
            time.sleep(POLL_S)
        try:
            return process.wait(LAST_LOOK_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return self._analyze()

    def _analyze(self, *options: str) -> int:
        with _turns:
            return self._start(*options).wait()

    def _start(self, *options: str) -> subprocess.Popen[bytes]:
        nowhere = subprocess.DEVNULL
        return subprocess.Popen(
            module_command("pipeline_lab.analysis", str(self._folder.path), *options),
            stdin=nowhere,
            stdout=nowhere,
            stderr=nowhere,
            env=child_environment(),
            start_new_session=True,
        )

    @property
    def is_running(self) -> bool:
        """Whether it runs, or waits for its turn."""
        return self._exit_code is None

    @property
    def has_failed(self) -> bool:
        return self._exit_code not in (None, 0)

    @property
    def may_be_repeated(self) -> bool:
        return self._exit_code == 0 and time.monotonic() - self.started_s > RETRY_S


class Attempts:
    """The analyses of one kind, by run."""

    def __init__(self) -> None:
        self._attempts: dict[Path, Attempt] = {}
        self._guard = threading.Lock()

    def find(self, folder: RunFolder) -> Attempt | None:
        """Return the last one of a run."""
        return self._attempts.get(folder.path)

    def start(self, folder: RunFolder, *options: str) -> Attempt:
        """Start one unless the last one is running, has failed, or ended just now."""
        with self._guard:
            attempt = self._attempts.get(folder.path)
            if attempt is None or attempt.may_be_repeated:
                self._attempts[folder.path] = attempt = Attempt(folder, options)
            return attempt

    def forget(self, folder: RunFolder) -> None:
        """Allow a failed one to be restarted."""
        with self._guard:
            self._attempts.pop(folder.path, None)


_ANY = "any"
"""Stands for inputs that never change."""


_attempts = Attempts()


def saved(folder: RunFolder) -> Diagnosis | None:
    """Return the latest diagnosis of a run in progress; None if no window is analyzed yet."""
    return _place(folder).load_latest()


def start_live_analysis(folder: RunFolder) -> None:
    """Analyze the windows of a run in progress as they arrive."""
    _attempts.start(folder, FOLLOW)


def live_steps(folder: RunFolder) -> JobSteps | None:
    """Return the steps that a run in progress has recorded so far, or None before the first measured one."""
    return _steps(folder.steps, fingerprint_file(folder.steps))


def wait_for(folder: RunFolder, *, is_sample: bool) -> Diagnosis | None:
    """Return a run's diagnosis; while or if there is none, say so and return None.

    Args:
        folder: A run that is over.
        is_sample: It never changes, so its saved diagnosis stays valid.
    """
    from pipeline_lab.analysis.diagnosis.saved import fingerprint_inputs

    with contextlib.suppress(LookupError):
        return _load(folder.path, _ANY if is_sample else fingerprint_inputs(folder.path))
    _show_waiting(folder)
    return None


def has_failed(folder: RunFolder) -> bool:
    """Say whether the analysis that this app started has failed."""
    attempt = _attempts.find(folder)
    return attempt is not None and attempt.has_failed


@st.fragment(run_every=POLL_S)
def _show_waiting(folder: RunFolder) -> None:
    place = _place(folder)
    if place.is_fresh:
        st.rerun()
    attempt = _attempts.start(folder)
    if attempt.has_failed:
        st.info(prose(place.error or "The analysis of this run failed without giving a reason."))
        if st.button("Try again", key="analyze-again"):
            _attempts.forget(folder)
        return
    done = place.progress
    text = f"Analyzing window {done.done + 1} of {done.total}" if done else "Analyzing the run"
    st.progress(done.done / done.total if done and done.total else 0.0, text=text)
    with st.container(border=True, key="skeleton"):  # where the answer will stand
        st.skeleton(height=46)
        st.skeleton(height=220)


def _place(folder: RunFolder) -> "SavedDiagnosis":
    from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis

    return SavedDiagnosis(folder.path)


@lru_cache(maxsize=8)
def _load(path: Path, inputs: str) -> Diagnosis:
    """Load what was saved for these inputs; a failure is not cached, because it may be there the next time."""
    place = _place(RunFolder(path))
    found = place.load_latest() if inputs == _ANY else place.load()
    if found is None:
        raise LookupError(path)
    from pipeline_lab.advice.advising import advise

    return advise(found)


@lru_cache(maxsize=4)
def _steps(path: Path, _fingerprint: Fingerprint) -> JobSteps | None:
    table = read_table(path, STEPS)
    if not table.num_rows:
        return None
    with contextlib.suppress(TraceIncompleteError):
        return job_steps.measure_job_steps(table, SAMPLES.schema.empty_table(), table.column("start_ns")[0].as_py())
    return None
