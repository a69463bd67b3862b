"""One run, race or search; the link says which."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from pipeline_lab.analysis.metrics.metric import Topic
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.runs.record import RunKind, RunRecord
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui.run import details, header, live, race_view, sections, tune_view, verdict_view, what_if_tab
from pipeline_lab.ui.serving import access
from pipeline_lab.ui.shared import analyses, cache, focus, links, reports, run_actions
from pipeline_lab.ui.timeline import component as timeline
from pipeline_lab.ui.timeline import jump
from pipeline_lab.ui.upload.parts_of_logs import parts_in_question


def show_run(store: RunStore, record: RunRecord, folder: RunFolder) -> None:
    """Show a run in whatever state it is; what can be done with it comes after the answer."""
    show_actions = partial(run_actions.show_actions, store, record.listed, can_open=False)
    if record.status.state.is_live:
        show_actions()
        live.show_live(folder, record.status.state)
        return
    if not folder.opened.is_dir():  # for a log, its analysis says why it cannot be read
        live.show_ending(record, folder)
    diagnosis = analyses.wait_for(folder, is_sample=store.is_sample(record.id))
    if diagnosis is None:
        show_actions()
        with st.expander("Options and source", key="details"):
            details.show(record, folder)
        return
    how = partial(tune_view.show_fix_command, record, folder)
    verdict_view.show_verdict(diagnosis, changes_in=what_if_tab.TITLE, show_how=how)
    verdict_view.show_metrics(diagnosis)
    tune_view.link_fix(store, record, folder)
    show_actions()
    verdict_view.show_more(diagnosis)
    bodies: dict[str, Callable[[], None]] = {each.value: partial(_show_section, each, diagnosis) for each in Topic}
    bodies[jump.TITLE] = partial(timeline.show, folder)
    bodies[what_if_tab.TITLE] = partial(what_if_tab.show, store, folder, diagnosis)
    bodies["XProf"] = partial(details.show_beside_xprof, folder)
    bodies["Options and source"] = partial(details.show, record, folder)
    _show_tabs(bodies)
    reports.show_exports([record.id])
    header.edit_notes(store, record)


def _show_tabs(bodies: dict[str, Callable[[], None]]) -> None:
    """Show a tab for each title; only the open one is built, and the link names it."""
    with st.container(key=jump.TABS):
        tabs = st.tabs(list(bodies), on_change="rerun", key=jump.SECTION, bind="query-params")
    for tab, show_body in zip(tabs, bodies.values(), strict=True):
        if tab.open:
            with tab:
                show_body()
    focus.show_if_asked(jump.TABS)


def _show_section(section: Topic, diagnosis: Diagnosis) -> None:
    sections.show_numbers(section, diagnosis)
    sections.show_section(section, diagnosis, {sections.STAGE_CHART: partial(sections.show_stage, diagnosis)})
    sections.show_longest(section, diagnosis)
    sections.show_tables(section, diagnosis)


VIEWS = {
    RunKind.LOG: show_run,
    RunKind.RUN: show_run,
    RunKind.RACE: race_view.show,
    RunKind.TUNE: tune_view.show,
}


def show_page() -> None:
    store = cache.store()
    record = header.chosen_run(store)
    folder = store.folder(record.id)
    if not access.why_read_only() and parts_in_question(folder):  # who only reads cannot answer
        links.open_upload(record.id)
    header.show(store, record)
    run_actions.show_unkept(store, folder)
    run_actions.show_left_out(folder)
    if record.kind.holds_several:
        run_actions.show_actions(store, record.listed, can_open=False)
    VIEWS[record.kind](store, record, folder)


if __name__ == "__main__":  # Streamlit runs this file as a script
    show_page()
