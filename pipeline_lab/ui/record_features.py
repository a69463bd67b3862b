"""What a user's records hold, in the form: read from the files themselves by a button, and listed below it."""

import contextlib

import streamlit as st

from pipeline_lab.errors import DataError, StoreError
from pipeline_lab.report.content import Table
from pipeline_lab.runs.found_features import infer_features
from pipeline_lab.ui import contents, server_paths, state
from pipeline_lab.ui.draft import Document, Draft, with_features
from pipeline_lab.ui.text import escape
from pipeline_lab.workloads.records import RecordFeature, parse_features


def show(draft: Draft, workload: Document, key: str) -> None:
    """Offer to read the first records of the files; list the features, or say what is wrong with the files.

    Where no path on the server may be opened, the features are typed.
    """
    if not server_paths.problem():
        _offer_to_read(draft, workload, key)
    with contextlib.suppress(ValueError):  # the form says what is wrong with the text
        if features := parse_features(workload["features"]):
            st.markdown(contents.write_table(_table(features)))


def _offer_to_read(draft: Draft, workload: Document, key: str) -> None:
    pattern = workload["pattern"]
    if st.button("Read the features from the files", key=f"{key}.infer", disabled=not pattern) and pattern:
        try:
            server_paths.check_pattern(pattern)
            features = infer_features(pattern, server_paths.check)
        except (DataError, StoreError) as error:
            st.error(escape(str(error)))
            return
        state.keep(with_features(draft, workload, features))
        st.rerun()


def _table(features: tuple[RecordFeature, ...]) -> Table:
    rows = tuple((each.name, each.kind, "any number" if each.length is None else str(each.length)) for each in features)
    return Table("Features", ("Feature", "Type", "Values per record"), rows, numeric=(2,))
