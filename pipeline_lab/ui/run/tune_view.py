"""A search on the run page: what was tried so far, then the winner and how it was found."""

from functools import partial

import streamlit as st

from pipeline_lab.figures.comparing.tune_charts import search_places
from pipeline_lab.options.tune_options import read_tune_options
from pipeline_lab.report.content import Picture
from pipeline_lab.runs.record import RunRecord, RunState
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.search_launch import resume_tune
from pipeline_lab.tuning.search_result import Tuning, describe, read_tuning
from pipeline_lab.tuning.space import START
from pipeline_lab.ui.run import header, live
from pipeline_lab.ui.serving import access
from pipeline_lab.ui.shared import contents, links, reports, state
from pipeline_lab.ui.shared.text import escape
from pipeline_lab.units import NS_PER_S, format_duration


def show(store: RunStore, record: RunRecord, folder: RunFolder) -> None:
    """Show a search in whatever state it is."""
    if record.status.state.is_live:
        live.show_progress(folder, record.status.state)
        _show_so_far(folder)
        return
    live.show_ending(record, folder)
    found, content = read_tuning(folder), reports.open_report(store, [folder]).content()
    contents.show_answer(content.answer)
    _show_command(found)
    _show_actions(store, found)
    contents.show_about(content)
    contents.show_tabs(content.sections, "tune-section")
    reports.show_exports([record.id])
    header.edit_notes(store, record)


@st.fragment(run_every=live.REDRAW_S)
def _show_so_far(folder: RunFolder) -> None:
    found = read_tuning(folder)
    budget = format_duration(found.options.budget_s * NS_PER_S)
    st.caption(f"{format_duration(found.spent_s * NS_PER_S)} of {budget} spent on {len(found.trials)} runs and races.")
    under_way = [trial.run for trial in found.trials if trial.seconds is None]
    if under_way and st.button("Open the current measurement", key="tune-watch"):
        links.open_run(under_way[-1])
    meaning = "Every configuration that raced so far, with its interval, next to its prediction."
    live.show_live_picture(Picture("search-places", meaning, partial(search_places, found)))
    for step in reversed(found.steps):
        st.markdown(f"- {escape(describe(step))}")


def _show_command(found: Tuning) -> None:
    if found.race_command is not None:
        st.markdown("To measure the gain, search again with a larger budget, or race it against the start:")
        st.code(found.race_command, language="shell", wrap_lines=True)


def _show_actions(store: RunStore, found: Tuning) -> None:
    with st.container(horizontal=True):
        who = "the winner" if found.winner_was_raced else "the model's choice"
        has_found = found.winner_name != START
        if has_found and st.button(f"Open {who} in the form", key="tune-winner", type="primary"):
            links.open_new_run(found.winner, f"run:{found.id}")
        if found.state is not RunState.DONE and st.button("Continue the search", key="tune-resume"):
            _resume(store, found.id)


def _resume(store: RunStore, run_id: str) -> None:
    with state.keep_problem():
        access.check_launch(read_tune_options(store.read(run_id).options or {}).start)
        resume_tune(store, run_id)
    st.rerun()
