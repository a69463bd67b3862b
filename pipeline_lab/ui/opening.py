"""A log on its way to being a run with a diagnosis; the page's link names it, so a reload loses nothing."""

import streamlit as st

from pipeline_lab.errors import StoreError
from pipeline_lab.runs.store import RunFolder, RunStore
from pipeline_lab.ui import server_paths, uploads

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
    """Go on with a log of this machine."""
    with st.spinner("Bringing the log into the store"):
        folder = server_paths.open_path(store, path)
    _go_on(folder)


def _go_on(folder: RunFolder) -> None:
    st.query_params[PARAMETER] = folder.id
    st.rerun()
