"""Fill the features of the records workload from the files themselves."""

import streamlit as st

from pipeline_lab.errors import DataError
from pipeline_lab.runs.found_features import infer_features
from pipeline_lab.ui import state
from pipeline_lab.ui.draft import Document, Draft, with_features
from pipeline_lab.ui.text import escape


def offer(draft: Draft, workload: Document, key: str) -> None:
    """Show a button that reads the first records of the files; what is wrong with them is said below it."""
    is_named = bool(workload["pattern"])
    if st.button("Read the features from the files", key=f"{key}.infer", disabled=not is_named) and is_named:
        try:
            features = infer_features(workload["pattern"])
        except DataError as error:
            st.error(escape(str(error)))
            return
        state.keep(with_features(draft, workload, features))
        st.rerun()
