"""The section *Export*: a report in each format, as a download."""

import streamlit as st

from pipeline_lab.report.formats import FORMATS
from pipeline_lab.ui.exports import report_url
from pipeline_lab.ui.text import escape

_MEANINGS = {
    "html": "One file that opens offline, with interactive charts.",
    "markdown": "For a pull request; with images as a zip where this machine can draw them.",
    "json": "All numbers, for programs.",
    "csv": "The tables, for spreadsheets, as a zip.",
    "parquet": "The tables with their types, as a zip.",
    "png": "Every chart as a picture, as a zip.",
    "svg": "Every chart as a drawing that stays sharp, as a zip.",
}


def show(run_ids: list[str]) -> None:
    """Show one button per format.

    Args:
        run_ids: One run or race, or runs with the baseline first.
    """
    st.subheader("Export", anchor=False)
    with st.container(horizontal=True, key="export"):
        for each in FORMATS:
            missing = each.missing()
            meaning = _MEANINGS.get(each.name) if missing is None else missing.reason
            st.link_button(
                escape(each.title), report_url(run_ids, each.name), help=meaning, disabled=missing is not None
            )
    command = f"pipeline-lab report {' '.join(run_ids)} --format html --output report.html"
    st.caption(f"The same bytes from the command line: `{command}`")
