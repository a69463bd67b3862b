"""A run's notes: the user's words, kept in the run's record and in every report of it."""

from dataclasses import replace

import streamlit as st

from pipeline_lab.errors import PipelineLabError
from pipeline_lab.report.plain_text import plain
from pipeline_lab.runs.record import RunRecord
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui import state
from pipeline_lab.ui.text import escape

MAX_CHARACTERS = 20_000


def show(record: RunRecord) -> None:
    """Show the notes as they were typed, line by line."""
    if record.notes.strip():
        with st.container(border=True, key="notes"):
            st.markdown(as_typed(record.notes))


def as_typed(text: str) -> str:
    """Return text as Markdown that shows the same lines and has no markup."""
    return "  \n".join(escape(line) for line in plain(text).strip().split("\n"))


def edit(store: RunStore, record: RunRecord) -> None:
    """Let the user change the notes; those of a sample stay as they are."""
    if store.is_sample(record.id):
        return
    with st.expander("Notes", key="notes-edit"), st.form("notes-form", border=False):
        text = st.text_area(
            "Your words on this run",
            record.notes,
            max_chars=MAX_CHARACTERS,
            height=200,
            key=f"notes-{record.id}",
            help="Kept with the run, shown on its page and in every report of it, as you type it.",
        )
        if st.form_submit_button("Save", type="primary", key="notes-save"):
            _save(store, record.id, text or "")
            st.rerun()


def _save(store: RunStore, run_id: str, text: str) -> None:
    try:
        store.update(run_id, lambda record: replace(record, notes=plain(text)[:MAX_CHARACTERS]))
    except PipelineLabError as error:
        state.set_problem(str(error))
