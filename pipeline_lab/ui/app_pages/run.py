"""One run: verdict first, then the numbers, then the charts behind them. The link says which run."""

import streamlit as st

from pipeline_lab.figures.catalogue import Section
from pipeline_lab.runs.record import RunKind
from pipeline_lab.ui import (
    analyses,
    beside_xprof,
    cache,
    charts,
    details,
    ending,
    export_links,
    header,
    keeping,
    live,
    notes,
    race_view,
    tune_view,
    verdict,
    what_if,
)
from pipeline_lab.ui.timeline import component as timeline
from pipeline_lab.ui.timeline import jump, longest

store = cache.store()
record = header.chosen_run(store)
folder = store.folder(record.id)
header.show(store, record)
keeping.show(store, folder)
if record.kind is RunKind.RACE:
    race_view.show(store, record, folder)
    st.stop()
if record.kind is RunKind.TUNE:
    tune_view.show(store, record, folder)
    st.stop()

if record.status.state.is_live:
    live.show_live(folder, record.status.state)
    st.stop()
if not folder.opened.is_dir():  # why a log cannot be read its analysis says
    ending.show_ending(record, folder)
diagnosis = analyses.wait_for(folder, is_sample=store.is_sample(record.id))
if diagnosis is None:
    details.show(record, folder)
    st.stop()

verdict.show_verdict(diagnosis.verdict, changes_in=what_if.TITLE)
verdict.show_findings(diagnosis)
verdict.show_metrics(diagnosis)
others = (jump.TITLE, what_if.TITLE, "Beside XProf", "Options and source")
tabs = st.tabs([*Section, *others], on_change="rerun", key=jump.SECTION, bind="query-params")
for section, tab in zip(Section, tabs, strict=False):
    if tab.open:
        with tab:
            details.show_numbers(section, diagnosis)
            charts.show_section(section, diagnosis)
            longest.show(section, diagnosis)
            details.show_tables(section, diagnosis)
if tabs[-4].open:
    with tabs[-4]:
        timeline.show(folder)
if tabs[-3].open:
    with tabs[-3]:
        what_if.show(store, folder, diagnosis)
if tabs[-2].open:
    with tabs[-2]:
        beside_xprof.show(folder)
if tabs[-1].open:
    with tabs[-1]:
        details.show(record, folder)
export_links.show([record.id])
notes.edit(store, record)
