"""The top of a run's page: which run it is, when it ran and on what, and its notes."""

from dataclasses import replace

import streamlit as st

from pipeline_lab.report.plain_text import plain
from pipeline_lab.runs.record import RunRecord
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui.shared import run_actions, state
from pipeline_lab.ui.shared.text import escape, format_moment
from pipeline_lab.units import NS_PER_S, format_duration, keep_together

PARAMETER = "run"


def chosen_run(store: RunStore) -> RunRecord:
    """Return the run that the link names, or the newest one.

    Raises:
        StoreError: There is no such run, or its record is damaged.
    """
    if not (run_id := st.query_params.get(PARAMETER, "")):
        newest = next(iter(store.runs()), None)
        if newest is None:
            st.info("There are no runs yet; launch one on the page New run.")
            st.stop()
        run_id = st.query_params[PARAMETER] = newest.id
    return store.read(run_id)


def show(store: RunStore, record: RunRecord) -> None:
    """Show name, state, times, tags and notes."""
    st.title(escape(record.name), anchor=False)
    tags = " ".join(f":blue-badge[{escape(tag)}]" for tag in record.tags)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.markdown(f"{run_actions.state_badge(store, record.listed)} {tags} {_facts(record)}".strip(), width="content")
        with st.container(key="run-id", width="content"):
            st.markdown(f"`{record.id}`", width="content")
    show_notes(record)


def _facts(record: RunRecord) -> str:
    status, facts = record.status, [format_moment(record.status.created_s)]
    if status.ended_s and (took_s := status.took_s) is not None:
        facts.append(f"ran {format_duration(took_s * NS_PER_S)}")
    return keep_together(" · ".join(facts))


MAX_CHARACTERS = 20_000


def show_notes(record: RunRecord) -> None:
    """Show the notes as typed, line by line."""
    if record.notes.strip():
        with st.container(border=True, key="notes"):
            st.markdown(as_typed(record.notes))


def as_typed(text: str) -> str:
    """Return text as Markdown that shows the same lines and has no markup."""
    return "  \n".join(escape(line) for line in plain(text).strip().split("\n"))


def edit_notes(store: RunStore, record: RunRecord) -> None:
    """Let the user edit the notes, but not those of a sample."""
    if store.is_sample(record.id):
        return
    with st.expander("Notes", key="notes-edit"), st.form("notes-form", border=False):
        text = st.text_area(
            "Notes on this run",
            record.notes,
            max_chars=MAX_CHARACTERS,
            height=200,
            key=f"notes-{record.id}",
            help="Saved with the run and shown on its page and in its reports.",
        )
        if st.form_submit_button("Save", type="primary", key="notes-save"):
            _save(store, record.id, text or "")
            st.rerun()


def _save(store: RunStore, run_id: str, text: str) -> None:
    with state.keep_problem():
        store.update(run_id, lambda record: replace(record, notes=plain(text)[:MAX_CHARACTERS]))
