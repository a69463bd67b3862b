"""The top of a run's page: which run it is, when it ran and on what."""

import streamlit as st

from pipeline_lab.runs.record import RunRecord
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui import cards, manage, notes
from pipeline_lab.ui.text import escape, format_moment
from pipeline_lab.units import NS_PER_S, format_duration

PARAMETER = "run"


def chosen_run(store: RunStore) -> RunRecord:
    """Return the run that the link names; without a name the newest one.

    Raises:
        StoreError: There is no such run, or its record is damaged.
    """
    if not (run_id := st.query_params.get(PARAMETER, "")):
        newest = next(iter(store.runs()), None)
        if newest is None:
            st.info("There are no runs yet; launch one from the page New run.")
            st.stop()
        run_id = st.query_params[PARAMETER] = newest.id
    return store.read(run_id)


def show(store: RunStore, record: RunRecord) -> None:
    """Show name, state, times, tags and what can be done with the run."""
    st.title(escape(record.name), anchor=False)
    tags = " ".join(f":blue-badge[{escape(tag)}]" for tag in record.tags)
    st.markdown(f"{cards.state_badge(store, record)} {tags} {_facts(record)}".strip())
    notes.show(record)
    manage.show_actions(store, record, can_open=False)


def _facts(record: RunRecord) -> str:
    status, facts = record.status, [f"`{record.id}`", format_moment(record.status.created_s)]
    if status.started_s and status.ended_s:
        facts.append(f"ran {format_duration((status.ended_s - status.started_s) * NS_PER_S)}")
    return " · ".join(facts)
