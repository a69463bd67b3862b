"""A log on its way to being a run with a diagnosis; the page's link names it, so a reload loses nothing."""

import streamlit as st

from pipeline_lab.errors import StoreError
from pipeline_lab.runs.store import RunFolder, RunStore
from pipeline_lab.ui import server_paths, uploads
from pipeline_lab.units import format_bytes

PARAMETER = "opened"


def under_way(store: RunStore) -> RunFolder | None:
    """Return the run that the link names; None without one, or if it is gone."""
    run_id = st.query_params.get(PARAMETER, "")
    try:
        return store.folder(run_id) if run_id else None
    except StoreError:
        del st.query_params[PARAMETER]
        return None


def open_upload(store: RunStore, upload_id: str) -> None:
    """Go on with an upload that has come whole."""
    _go_on(uploads.finish(store, upload_id))


def open_path(store: RunStore, path: str) -> None:
    """Go on with a log of this machine.

    Copying one from another disk takes a while. Its bar has a button beside it: like any other click that one starts
    the page anew, which ends this run of it at the next block, and what was copied goes.
    """
    shown = st.empty()
    with shown.container(border=True, key="copying"):
        bar = st.progress(0.0, "Bringing the log into the store")
        st.button("Cancel", key="cancel-copying")

    def copied(done: int, total: int) -> None:
        bar.progress(done / total, f"Copying the log: {format_bytes(done)} of {format_bytes(total)}")

    try:
        folder = server_paths.open_path(store, path, copied)
    finally:
        shown.empty()
    _go_on(folder)


def _go_on(folder: RunFolder) -> None:
    st.query_params[PARAMETER] = folder.id
    st.rerun()
