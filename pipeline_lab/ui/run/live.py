"""A run in progress: how far it is, its place in the queue, live charts, a way to stop it; and how it ended.

Everything comes from the run folder, once a second, so a reload or a second browser shows the same.
"""

import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path

import plotly.graph_objects as go
import streamlit as st

from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.chart_list import find_chart
from pipeline_lab.figures.job_charts import step_time
from pipeline_lab.figures.stall_charts import stall_over_time
from pipeline_lab.runs.launch.launcher import cancel
from pipeline_lab.runs.launch.queue import runs_before
from pipeline_lab.runs.record import RunKind, RunRecord, RunState
from pipeline_lab.runs.run_events import (
    LAST_PHASE,
    CaptureProgressEvent,
    DataProgressEvent,
    Event,
    EventReader,
    FailureEvent,
    NoteEvent,
    PhaseEvent,
    ProgressEvent,
    RaceEvent,
    WindowEvent,
    describe_phase,
)
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.ui.run import verdict_view
from pipeline_lab.ui.serving import server
from pipeline_lab.ui.shared import analyses, cache, state
from pipeline_lab.ui.shared.chart import DrawnChart, draw_chart, show_drawn
from pipeline_lab.ui.shared.one_look import REDRAW_S, look, paced
from pipeline_lab.ui.shared.text import escape, prose, sentence
from pipeline_lab.ui.timeline import component as timeline
from pipeline_lab.units import NS_PER_S, format_count, format_duration, keep_together

POLL_S = 1.0
SO_FAR = ("device-timeline", "idle-by-cause")
"""Charts of the windows of a job in progress."""
_CALM = "<style>[data-testid='stStatusWidget'] { visibility: hidden }</style>"
"""A page that polls its run every second would make Streamlit's status icon blink."""


@dataclass(frozen=True)
class Progress:
    """A run's progress.

    Attributes:
        text: What it does now, for display.
        fraction: Done share of the training, 0 to 1; None before it is known.
        windows: Profile windows on disk.
        notes: The worker's notes.
        failure: How it failed, or None.
    """

    text: str
    fraction: float | None
    windows: int
    notes: tuple[str, ...]
    failure: FailureEvent | None


BEGINNING = Progress("Starting", None, 0, (), None)


def show_live(folder: RunFolder, shown: RunState) -> None:
    """Show a run in progress, and poll it.

    Args:
        folder: The run.
        shown: The state that the rest of the page shows; the page reruns when it changes.
    """
    show_progress(folder, shown)
    st.fragment(_show_so_far, run_every=paced(REDRAW_S))(folder)


def show_progress(folder: RunFolder, shown: RunState) -> None:
    """Show progress and a way to stop the run; rerun the page when its state is no longer ``shown``."""
    st.fragment(_show_progress, run_every=paced(POLL_S))(folder, shown)


def _show_progress(folder: RunFolder, shown: RunState) -> None:
    st.html(_CALM)
    record = read_record(folder)
    if not record.status.state.is_live:
        server.renew_spare()
    if record.status.state is not shown:
        st.rerun()
    _write_progress(folder, record, progress_of(folder))


def _write_progress(folder: RunFolder, record: RunRecord, progress: Progress) -> None:
    left, right = st.columns([5, 1], vertical_alignment="bottom")
    left.progress(progress.fraction or 0.0, text=escape(_sentence(folder, record, progress)))
    if folder.cancel_flag.exists():
        right.button("Stopping …", disabled=True, key="cancel-asked", width="stretch")
    else:
        is_ours = record.kind is not RunKind.LOG
        label = "Cancel" if is_ours else "Stop recording"
        meaning = f"{'End the run' if is_ours else 'The job goes on'}; what was recorded is kept."
        right.button(label, key="cancel", width="stretch", help=meaning, on_click=_cancel, args=(folder,))
    if problem := state.take_problem():
        st.error(prose(sentence(problem)))
    for note in progress.notes:
        st.caption(escape(note))


def _sentence(folder: RunFolder, record: RunRecord, progress: Progress) -> str:
    if record.status.state is RunState.QUEUED:
        before = runs_before(folder.id)
        if not before:
            return "Waiting for the device."
        return f"Waiting for the device: {before} {'run' if before == 1 else 'runs'} ahead."
    if not progress.windows:
        return progress.text
    return f"{progress.text} · {progress.windows} profile {'window' if progress.windows == 1 else 'windows'} on disk"


@dataclass(frozen=True)
class _SoFar:
    """What a run in progress shows below its progress.

    Attributes:
        is_begun: Whether there is something to analyze.
        said: One sentence.
        charts: In order.
        diagnosis: Of its windows, where they are all there is.
    """

    is_begun: bool
    said: str
    charts: tuple[DrawnChart, ...]
    diagnosis: Diagnosis | None


def _show_so_far(folder: RunFolder) -> None:
    so_far = look(folder, "charts", partial(_draw_so_far, folder))
    if so_far.is_begun:
        analyses.start_live_analysis(folder)
    st.caption(so_far.said)
    if so_far.diagnosis is not None:
        verdict_view.show_verdict(so_far.diagnosis)
        verdict_view.show_metrics(so_far.diagnosis)
    for chart in so_far.charts:
        show_drawn(chart)
    timeline.show_so_far(folder)


def _draw_so_far(folder: RunFolder) -> _SoFar:
    job, diagnosis = analyses.live_steps(folder), analyses.saved(folder)
    gaps = [] if diagnosis is None else list(_draw_gaps(diagnosis))
    if job is None:
        return _SoFar(bool(folder.windows()), _without_steps(folder), tuple(gaps), diagnosis)
    said = f"Median step {format_duration(job.median_ns)} over {format_count(job.count)} measured steps so far."
    return _SoFar(True, keep_together(said), (*_draw_steps(job), *gaps), None)


def _without_steps(folder: RunFolder) -> str:
    """Say what to expect where no step is timed yet, or ever."""
    if folder.source.exists() or folder.steps.exists():
        return "Charts appear with the first steps."
    if not folder.windows():
        return "This job's steps are not timed individually; results appear with the first profile window."
    return "This job's steps are not timed individually; these are the results of its profile windows so far."


def _draw_steps(job: JobSteps) -> Iterator[DrawnChart]:
    waits = stall_over_time(job)
    if not isinstance(waits, Unavailable):
        yield draw_live_chart(waits, "live-stalls", "Wait of each step so far.")
    yield draw_live_chart(step_time(job), "live-steps", "Time of each step so far.")


def _draw_gaps(diagnosis: Diagnosis) -> Iterator[DrawnChart]:
    """Draw what the windows analyzed so far say about the device."""
    for name in SO_FAR:
        chart = find_chart(name)
        drawing = chart.draw(diagnosis)
        if not isinstance(drawing, Unavailable):
            yield draw_live_chart(drawing, f"live-{chart.name}", chart.description)


def _cancel(folder: RunFolder) -> None:
    with state.keep_problem():
        cache.store().check_unlocked()
        cancel(folder)


def draw_live_chart(figure: go.Figure, name: str, description: str) -> DrawnChart:
    """Draw a figure with its heading inside."""
    return draw_chart(figure, name, f"{figure.layout.title.text}. {description}")


class _Followed:
    """The events of a run: only those that are new are read, whoever looks; a long job reports some hundred thousand."""

    def __init__(self, path: Path) -> None:
        self._reader, self._guard = EventReader(path), threading.Lock()
        self._progress = BEGINNING

    def look(self) -> Progress:
        with self._guard:
            self._progress = summarize(self._reader.read(), self._progress)
            return self._progress


@lru_cache(maxsize=200)
def _followed(path: Path, _inode: int) -> _Followed:
    return _Followed(path)


def progress_of(folder: RunFolder) -> Progress:
    """Return how far a run has come."""
    try:
        return _followed(folder.events, folder.events.stat().st_ino).look()
    except OSError:
        return BEGINNING


def summarize(events: Sequence[Event], before: Progress = BEGINNING) -> Progress:
    """Return the progress that events describe, after some earlier ones."""
    text, fraction = before.text, before.fraction
    for event in events:
        if isinstance(event, PhaseEvent):
            text = sentence(describe_phase(event.phase))
            fraction = 1.0 if event.phase == LAST_PHASE else fraction
        elif isinstance(event, DataProgressEvent):
            text = f"Writing the data files: {event.files} of {event.total_files}"
        elif isinstance(event, CaptureProgressEvent):
            text = f"Recording windows of the job: {event.windows} of {event.total_windows}"
            fraction = event.windows / event.total_windows
        elif isinstance(event, ProgressEvent):
            text, fraction = _describe(event), _fraction(event)
        elif isinstance(event, RaceEvent):
            text, fraction = _describe_race(event), _race_fraction(event)
    return Progress(
        text,
        fraction,
        windows=before.windows + sum(isinstance(event, WindowEvent) for event in events),
        notes=before.notes + tuple(event.sentence for event in events if isinstance(event, NoteEvent)),
        failure=next((event for event in reversed(events) if isinstance(event, FailureEvent)), before.failure),
    )


def _fraction(event: ProgressEvent) -> float | None:
    if event.total_steps:
        return min(1.0, event.steps / event.total_steps)
    return min(1.0, event.elapsed_s / event.total_s) if event.total_s else None


def _describe(event: ProgressEvent) -> str:
    if event.total_steps:
        return f"Training: step {format_count(event.steps)} of {format_count(event.total_steps)}"
    elapsed = format_duration(event.elapsed_s * NS_PER_S)
    total = f" of {format_duration(event.total_s * NS_PER_S)}" if event.total_s else ""
    return keep_together(f"Training: {format_count(event.steps)} steps in {elapsed}{total}")


def _race_fraction(event: RaceEvent) -> float:
    return min(1.0, max(event.rounds / event.max_rounds, event.elapsed_s / event.max_s))


def _describe_race(event: RaceEvent) -> str:
    elapsed, longest = (format_duration(seconds * NS_PER_S) for seconds in (event.elapsed_s, event.max_s))
    rounds = f"{event.rounds} {'round' if event.rounds == 1 else 'rounds'}"
    left_out = event.rounds - event.kept_rounds
    disturbed = f" ({left_out} disturbed and left out)" if left_out else ""
    return keep_together(f"Racing: {rounds}{disturbed} in {elapsed} of at most {longest}")


LOG_TAIL_BYTES = 20_000


def show_ending(record: RunRecord, folder: RunFolder) -> None:
    """Show why a run failed, was lost or canceled, and its worker's notes."""
    progress = progress_of(folder)
    status = record.status
    if status.state is RunState.CANCELLED:
        st.info(prose(status.reason or "The run was canceled; what it recorded is below."))
    elif status.state in (RunState.FAILED, RunState.LOST):
        st.error(prose(status.reason or "The run failed without giving a reason."))
        with st.expander("For a bug report"):
            st.code(progress.failure.traceback if progress.failure else _log_tail(folder), language=None)
    for note in progress.notes:
        st.caption(escape(note))


def _log_tail(folder: RunFolder) -> str:
    try:
        text = folder.log.read_bytes()[-LOG_TAIL_BYTES:].decode("utf-8", "replace")
    except OSError:
        return "The worker wrote nothing."
    return text or "The worker wrote nothing."
