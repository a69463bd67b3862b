"""How a run ended when not as planned: one sentence, and the traceback only for a bug report."""

import streamlit as st

from pipeline_lab.runs.record import RunRecord, RunState
from pipeline_lab.runs.run_events import read_events
from pipeline_lab.runs.store import RunFolder
from pipeline_lab.ui.progress import summarise
from pipeline_lab.ui.text import escape

LOG_TAIL_BYTES = 20_000


def show_ending(record: RunRecord, folder: RunFolder) -> None:
    """Show why a run failed, was lost or cancelled, and what its worker wants readers to know."""
    progress = summarise(read_events(folder.events))
    status = record.status
    if status.state is RunState.CANCELLED:
        st.info(escape(status.reason or "The run was cancelled; what it had recorded is below."))
    elif status.state in (RunState.FAILED, RunState.LOST):
        st.error(escape(status.reason or "The run failed and left no reason."))
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
