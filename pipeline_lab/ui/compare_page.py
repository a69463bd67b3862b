"""Recorded runs side by side: the answer with their steps above each other, then what was measured, then their options."""

import streamlit as st

from pipeline_lab.figures.comparing.chart_lists import COMPARED_STEPS
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui.shared import analyses, cache, contents, links, reports
from pipeline_lab.ui.shared.choices import can_be_compared, labels_of
from pipeline_lab.ui.shared.reports import MAX_RUNS, folders_of
from pipeline_lab.ui.shared.text import escape


def chosen(store: RunStore) -> list[RunFolder]:
    """Return the runs that the link names, the baseline first; none if it names none.

    Raises:
        OptionsError: There are too many.
        StoreError: There is no such run.
    """
    named = st.query_params.get(links.RUNS_PARAMETER, "")
    return folders_of(store, named) if named else []


def show_choice(store: RunStore, folders: list[RunFolder]) -> None:
    """Let the user choose runs and a baseline; the page then runs again for the new link."""
    records = {record.id: record for record in store.runs() if can_be_compared(record)}
    labels = labels_of(records)
    named = [folder.id for folder in folders if folder.id in records]
    key = "-".join(named)[:300]
    with st.expander("Choose runs", expanded=len(named) < 2), st.form("compare-form", border=False):
        ids = st.multiselect(
            "Runs, the baseline first",
            list(records),
            named,
            format_func=labels.__getitem__,
            max_selections=MAX_RUNS,
            key=f"compare-runs-{key}",
            placeholder=f"2 to {MAX_RUNS} runs",
        )
        baseline = st.selectbox(
            "Another baseline",
            list(records),
            None,
            format_func=labels.__getitem__,
            key=f"compare-baseline-{key}",
            placeholder="the first run",
        )
        if st.form_submit_button("Compare", type="primary", key="compare"):
            st.query_params[links.RUNS_PARAMETER] = ",".join(with_baseline(ids, baseline))
            st.rerun()


def with_baseline(ids: list[str], baseline: str | None) -> list[str]:
    """Return the ids, the baseline first."""
    return ids if baseline is None else [baseline, *(each for each in ids if each != baseline)]


def offer_race(store: RunStore, folders: list[RunFolder]) -> None:
    """Offer what settles the question that runs recorded separately leave open; logs from elsewhere cannot race."""
    can_race = [folder.id for folder in folders if store.read(folder.id).options is not None]
    if len(can_race) == len(folders) and st.button("Race these against each other", key="compare-race"):
        links.open_race([f"run:{run_id}" for run_id in can_race])


def show_page() -> None:
    st.title("How do runs differ?", anchor=False)
    store = cache.store()
    folders = chosen(store)
    show_choice(store, folders)
    if len(folders) < 2:
        st.info(
            f"Choose 2 to {reports.MAX_RUNS} runs; the first is the baseline. Running jobs and races cannot be chosen."
        )
        st.stop()

    unanalyzed = reports.find_unanalyzed(store, folders)
    if unanalyzed is not None:
        st.caption(f"{escape(store.read(unanalyzed.id).name)} is not analyzed yet.")
        if analyses.wait_for(unanalyzed, is_sample=store.is_sample(unanalyzed.id)) is not None:
            st.rerun()
        st.stop()

    content = reports.open_content(store, folders)
    strips, (differences, *sections) = contents.take_picture(content.sections, COMPARED_STEPS)
    st.header(escape(content.title), anchor=False)
    contents.show_answer(content.answer, strips)
    contents.show_warnings(content)
    offer_race(store, folders)
    contents.show_tabs((*sections, differences), "compare-section")
    reports.show_exports([folder.id for folder in folders])


if __name__ == "__main__":  # Streamlit runs this file as a script
    show_page()
