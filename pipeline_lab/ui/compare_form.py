"""Which runs are compared: the page's link names them, the baseline first."""

from collections import Counter

import streamlit as st

from pipeline_lab.runs.record import RunRecord
from pipeline_lab.runs.store import RunFolder, RunStore
from pipeline_lab.ui import links
from pipeline_lab.ui.subjects import MAX_RUNS, folders_of
from pipeline_lab.ui.text import format_moment


def chosen(store: RunStore) -> list[RunFolder]:
    """Return the runs that the link names, the baseline first; none if it names none.

    Raises:
        OptionsError: There are too many.
        StoreError: There is no such run.
    """
    named = st.query_params.get(links.RUNS_PARAMETER, "")
    return folders_of(store, named) if named else []


def show(store: RunStore, folders: list[RunFolder]) -> None:
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
            placeholder="the first of them",
        )
        if st.form_submit_button("Compare", type="primary", key="compare"):
            st.query_params[links.RUNS_PARAMETER] = ",".join(with_baseline(ids, baseline))
            st.rerun()


def with_baseline(ids: list[str], baseline: str | None) -> list[str]:
    """Return the ids with the baseline first."""
    return ids if baseline is None else [baseline, *(each for each in ids if each != baseline)]


def offer_race(store: RunStore, folders: list[RunFolder]) -> None:
    """Offer what settles the question that runs recorded apart leave open; logs from elsewhere cannot race."""
    can_race = [folder.id for folder in folders if store.read(folder.id).options is not None]
    if len(can_race) == len(folders) and st.button("Race these against each other", key="compare-race"):
        links.open_race([f"run:{run_id}" for run_id in can_race])


def can_be_compared(record: RunRecord) -> bool:
    """Say whether a run may stand beside others: a race holds its own comparison, a live run has no end yet."""
    return not record.status.state.is_live and not record.kind.holds_several


def labels_of(records: dict[str, RunRecord]) -> dict[str, str]:
    """Return name and moment of each run, and the end of its id where others share them."""
    labels = {each.id: f"{each.name} · {format_moment(each.status.created_s)}" for each in records.values()}
    shared = Counter(labels.values())
    return {each: label if shared[label] == 1 else f"{label} · {each[-4:]}" for each, label in labels.items()}
