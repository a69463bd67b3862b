"""A job or a log on the run page: verdict first, then the numbers, then the charts behind them in tabs."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.figures.chart_list import Topic
from pipeline_lab.runs.record import RunRecord
from pipeline_lab.runs.store import RunFolder, RunStore
from pipeline_lab.ui import (
    analyses,
    beside_xprof,
    charts,
    details,
    ending,
    export_links,
    live,
    notes,
    scroll,
    stage_details,
    verdict,
    what_if,
)
from pipeline_lab.ui.timeline import component as timeline
from pipeline_lab.ui.timeline import jump, longest


def show(store: RunStore, record: RunRecord, folder: RunFolder) -> None:
    """Show a run in whatever state it is."""
    if record.status.state.is_live:
        live.show_live(folder, record.status.state)
        return
    if not folder.opened.is_dir():  # why a log cannot be read its analysis says
        ending.show_ending(record, folder)
    diagnosis = analyses.wait_for(folder, is_sample=store.is_sample(record.id))
    if diagnosis is None:
        details.show(record, folder)
        return
    verdict.show_verdict(diagnosis.verdict, changes_in=what_if.TITLE)
    verdict.show_findings(diagnosis)
    verdict.show_metrics(diagnosis)
    bodies: dict[str, Callable[[], None]] = {each.value: partial(_show_section, each, diagnosis) for each in Topic}
    bodies[jump.TITLE] = partial(timeline.show, folder)
    bodies[what_if.TITLE] = partial(what_if.show, store, folder, diagnosis)
    bodies["Beside XProf"] = partial(beside_xprof.show, folder)
    bodies["Options and source"] = partial(details.show, record, folder)
    _show_tabs(bodies)
    export_links.show([record.id])
    notes.edit(store, record)


def _show_tabs(bodies: dict[str, Callable[[], None]]) -> None:
    """Show a tab for each title; only the open one is built, and the link names it."""
    with st.container(key=jump.TABS):
        tabs = st.tabs(list(bodies), on_change="rerun", key=jump.SECTION, bind="query-params")
    for tab, show_body in zip(tabs, bodies.values(), strict=True):
        if tab.open:
            with tab:
                show_body()
    scroll.show_if_asked(jump.TABS)


def _show_section(section: Topic, diagnosis: Diagnosis) -> None:
    details.show_numbers(section, diagnosis)
    charts.show_section(section, diagnosis, {stage_details.CHART: partial(stage_details.show, diagnosis)})
    longest.show(section, diagnosis)
    details.show_tables(section, diagnosis)
