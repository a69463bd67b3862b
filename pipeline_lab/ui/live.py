"""A run while it works: progress, place in the line, charts that fill in, a way to stop it.

Everything comes from the run folder, once a second, so a reload or a second browser shows the same.
"""

import streamlit as st

from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.errors import PipelineLabError, Unavailable
from pipeline_lab.figures.chart_list import Topic, charts_of
from pipeline_lab.figures.job_charts import step_time
from pipeline_lab.figures.stall_charts import stall_over_time
from pipeline_lab.runs.launch.launcher import cancel, position
from pipeline_lab.runs.record import RunKind, RunRecord, RunState
from pipeline_lab.runs.run_events import read_events
from pipeline_lab.runs.store import RunFolder, read_record
from pipeline_lab.ui import analyses, background, cache, live_chart, state, verdict
from pipeline_lab.ui.progress import Progress, summarise
from pipeline_lab.ui.text import escape, sentence
from pipeline_lab.ui.timeline import component as timeline
from pipeline_lab.units import format_count, format_duration

POLL_S = 1.0
REDRAW_S = 3.0
"""Charts follow less often than progress: their steps are read and summed up anew each time."""
_CALM = "<style>[data-testid='stStatusWidget'] { visibility: hidden }</style>"
"""A page that looks at its run every second is always at work; Streamlit's sign for it would blink."""


def show_live(folder: RunFolder, shown: RunState) -> None:
    """Show a run that is not over, and look at it again and again.

    Args:
        folder: The run.
        shown: The state in which the rest of the page shows it; the page runs again when it changes.
    """
    follow(folder, shown)
    _show_charts(folder)
    timeline.show_so_far(folder)


@st.fragment(run_every=POLL_S)
def follow(folder: RunFolder, shown: RunState) -> None:
    """Show progress and a way to stop a run; the page runs again when its state is another than ``shown``."""
    st.html(_CALM)
    record = read_record(folder)
    if not record.status.state.is_live:
        background.renew_spare()
    if record.status.state is not shown:
        st.rerun()
    _show_progress(folder, record, summarise(read_events(folder.events)))


def _show_progress(folder: RunFolder, record: RunRecord, progress: Progress) -> None:
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
        st.error(escape(sentence(problem)))
    for note in progress.notes:
        st.caption(escape(note))


def _sentence(folder: RunFolder, record: RunRecord, progress: Progress) -> str:
    if record.status.state is RunState.QUEUED:
        before = position(folder)
        if not before:
            return "Waiting for the device."
        return f"Waiting for the device: {before} {'run comes' if before == 1 else 'runs come'} first."
    if not progress.windows:
        return progress.text
    return f"{progress.text} · {progress.windows} profile {'window' if progress.windows == 1 else 'windows'} on disk"


@st.fragment(run_every=REDRAW_S)
def _show_charts(folder: RunFolder) -> None:
    job = analyses.live_steps(folder)
    if job is None:
        st.caption(_without_steps(folder))
    else:
        _show_steps(job)
    if job is None and not folder.windows():
        return
    analyses.follow(folder)
    diagnosis = analyses.saved(folder)
    if diagnosis is None:
        return
    if job is None:  # the windows are all there is
        verdict.show_verdict(diagnosis.verdict)
        verdict.show_metrics(diagnosis)
    _show_gaps(diagnosis)


def _without_steps(folder: RunFolder) -> str:
    """Say what will come where no step is timed yet, or ever."""
    if folder.source.exists() or folder.steps.exists():
        return "Charts appear with the first steps."
    if not folder.windows():
        return "This job's steps are not timed one by one. What its profile windows say appears with the first of them."
    return "This job's steps are not timed one by one. This is what its profile windows say so far."


def _show_steps(job: JobSteps) -> None:
    st.caption(f"Median step {format_duration(job.median_ns)} over {format_count(job.count)} measured steps so far.")
    for figure, name, description in (
        (stall_over_time(job, state.mode()), "live-stalls", "Wait of each step so far."),
        (step_time(job, state.mode()), "live-steps", "Time of each step so far."),
    ):
        live_chart.show(figure, name, description)


def _show_gaps(diagnosis: Diagnosis) -> None:
    """Show what the windows that are analysed so far say about the device."""
    for chart in charts_of(Topic.GAPS)[:2]:
        drawing = chart.draw(diagnosis, state.mode())
        if not isinstance(drawing, Unavailable):
            live_chart.show(drawing, f"live-{chart.name}", chart.description)


def _cancel(folder: RunFolder) -> None:
    try:
        cache.store().check_unlocked()
        cancel(folder)
    except PipelineLabError as error:
        state.set_problem(str(error))
