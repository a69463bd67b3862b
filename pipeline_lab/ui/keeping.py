"""What becomes of a log that somebody opened: keep it as a run, or throw it away."""

import streamlit as st

from pipeline_lab.runs import opened_logs
from pipeline_lab.runs.store import RunFolder, RunStore
from pipeline_lab.ui import links


def show(store: RunStore, folder: RunFolder) -> None:
    """Offer both while nothing is decided."""
    if not opened_logs.is_unkept(folder):
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="unkept"):
        st.markdown(":orange-badge[not kept] This log goes a day after it was opened, unless you keep it.")
        if st.button("Keep", key="keep", type="primary"):
            store.check_unlocked()
            opened_logs.keep(folder)
            st.rerun()
        if st.button("Throw away", key="throw-away"):
            throw_away(store, folder)


def throw_away(store: RunStore, folder: RunFolder) -> None:
    """Delete the log with everything that was found in it, and go back to where logs are opened."""
    store.remove(folder.id)
    st.switch_page(links.UPLOAD)
