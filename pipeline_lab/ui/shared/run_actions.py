"""Actions on a run: open, rename, tag, copy its options into the form, delete, keep."""

from collections.abc import Callable

import streamlit as st

from pipeline_lab.options.run_options import read_options
from pipeline_lab.runs import opened_logs
from pipeline_lab.runs.record import ListedRun, RunKind, RunState
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui.shared import links, state
from pipeline_lab.ui.shared.choices import can_be_compared
from pipeline_lab.ui.shared.reports import MAX_RUNS
from pipeline_lab.ui.shared.text import escape

NAMED_LEFT_OUT = 6
_STATE_COLOURS = {
    RunState.DONE: "green",
    RunState.FAILED: "red",
    RunState.LOST: "red",
    RunState.CANCELLED: "gray",
}


def state_badge(store: RunStore, record: ListedRun) -> str:
    """Return the run's state as a colored badge in Markdown."""
    if store.is_sample(record.id):
        return ":violet-badge[sample]"
    return f":{_STATE_COLOURS.get(record.status.state, 'blue')}-badge[{record.status.state.label}]"


def show_actions(store: RunStore, record: ListedRun, *, can_open: bool) -> None:
    """Show a run's buttons; samples can only be viewed and copied."""
    key, is_own = f"manage-{record.id}", not store.is_sample(record.id)
    with st.container(horizontal=True, vertical_alignment="center"):
        if can_open:
            st.markdown(f"**{escape(record.name)}**", width="content")
            if st.button("Open", key=f"{key}-open", type="primary"):
                links.open_run(record.id)
        if can_start_another(record) and st.button("Copy into a new run", key=f"{key}-copy"):
            links.open_new_run(read_options(store.read(record.id).options or {}), f"run:{record.id}")
        if can_start_another(record) and st.button("Race this against …", key=f"{key}-race"):
            links.open_race([f"run:{record.id}"])
        if can_start_another(record) and st.button("Tune", key=f"{key}-tune", help="Search for a faster pipeline."):
            links.open_tune(f"run:{record.id}")
        if is_own:
            with st.popover("Rename or tag", key=f"{key}-edit"):
                _show_name_and_tags(store, record, key)
            if not record.status.state.is_live:
                with st.popover("Delete", key=f"{key}-delete"):
                    _show_delete(store, record, key)


def show_comparison(records: list[ListedRun]) -> None:
    """Show the button that compares runs; the oldest of them is the baseline."""
    fitting = sorted(filter(can_be_compared, records), key=lambda record: (record.status.created_s, record.id))
    with st.container(horizontal=True, vertical_alignment="center"):
        too_many = len(fitting) > MAX_RUNS
        label = f"Compare {len(fitting)} runs"
        if st.button(label, type="primary", key="compare-chosen", disabled=len(fitting) < 2 or too_many):
            links.open_comparison([record.id for record in fitting])
        if fitting:
            st.markdown(f"against **{escape(fitting[0].name)}**, the oldest", width="content")
        if too_many:
            st.caption(f"At most {MAX_RUNS} runs fit side by side.")
        elif len(fitting) < len(records):
            st.caption("Races and running jobs are left out.")


def can_start_another(record: ListedRun) -> bool:
    """Say whether a run's options fill the form: those of a race, and of a log, do not."""
    return record.kind is RunKind.RUN


def _show_name_and_tags(store: RunStore, record: ListedRun, key: str) -> None:
    with st.form(f"{key}-form", border=False):
        name = st.text_input("Name", record.name, max_chars=200, key=f"{key}-name")
        tags = st.text_input("Tags (comma-separated)", ", ".join(record.tags), key=f"{key}-tags")
        if st.form_submit_button("Save", type="primary"):
            _attempt(lambda: store.rename(record.id, name))
            _attempt(lambda: store.tag(record.id, tuple(tags.split(","))))
            st.rerun()


def _show_delete(store: RunStore, record: ListedRun, key: str) -> None:
    st.markdown(f"**{escape(record.name)}** and everything it recorded will be deleted.")
    if st.button("Delete permanently", type="primary", key=f"{key}-confirm"):
        _attempt(lambda: store.remove(record.id))
        st.switch_page(links.RUNS.path)


def _attempt(action: Callable[[], object]) -> None:
    with state.keep_problem():
        action()


def show_left_out(folder: RunFolder) -> None:
    """Name the files that came with an opened log and are no part of it."""
    if names := opened_logs.left_out(folder):
        more = len(names) - NAMED_LEFT_OUT
        named = ", ".join(names[:NAMED_LEFT_OUT]) + (f" and {more} more" if more > 0 else "")
        st.caption(f"Left out, because they hold no profile: {escape(named)}.")


def show_unkept(store: RunStore, folder: RunFolder) -> None:
    """Offer to keep or discard an opened log."""
    if not opened_logs.is_unkept(folder):
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="unkept"):
        st.markdown(":orange-badge[not kept] This log is deleted one day after it was opened unless you keep it.")
        if st.button("Keep", key="keep", type="primary"):
            store.check_unlocked()
            opened_logs.keep(folder)
            st.rerun()
        if st.button("Discard", key="discard"):
            discard(store, folder)


def discard(store: RunStore, folder: RunFolder) -> None:
    """Delete the log with its analysis, and return to the page that opens logs."""
    store.remove(folder.id)
    st.switch_page(links.UPLOAD.path)
