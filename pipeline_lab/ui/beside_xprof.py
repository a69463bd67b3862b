"""Our numbers beside XProf's, on request: XProf takes its time, and runs in a process of its own."""

import shlex
from typing import TYPE_CHECKING

import streamlit as st

from pipeline_lab.runs.store import RunFolder
from pipeline_lab.ui.attempts import Attempts
from pipeline_lab.ui.text import escape
from pipeline_lab.units import NS_PER_S, format_bytes, format_duration

if TYPE_CHECKING:
    from pipeline_lab.analysis.xprof.xprof_comparison import CrossCheck

POLL_S = 1.0
_attempts = Attempts()


def show(folder: RunFolder) -> None:
    """Show the comparison, or a button that has it made."""
    from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis

    place = SavedDiagnosis(folder.path)
    check = place.load_cross_check()
    if check is not None:
        _show_table(check)
        return
    attempt = _attempts.find(folder)
    if attempt is not None and attempt.is_running:
        _show_waiting(folder)
        return
    if attempt is not None:
        st.info(escape((place.error if attempt.has_failed else None) or "The comparison ended without an answer."))
    st.markdown(
        "What XProf says about the same traces, and why the two differ. It runs in a process of its own, for five "
        "minutes and 8 GB at most; the result is kept with the run."
    )
    st.caption("To look at the traces in XProf itself (its server answers other machines too, so start it yourself):")
    st.code(f"xprof --logdir {shlex.quote(str(folder.path.parent))} --port 8791", language="shell")
    if st.button("Ask XProf", key="ask-xprof", type="primary"):
        _attempts.forget(folder)
        _attempts.start(folder, "--xprof")
        st.rerun()


@st.fragment(run_every=POLL_S)
def _show_waiting(folder: RunFolder) -> None:
    attempt = _attempts.find(folder)
    if attempt is None or not attempt.is_running:
        st.rerun()
    st.markdown("XProf is reading the traces …")


def _show_table(check: "CrossCheck") -> None:
    rows = check.differences
    st.table(
        {
            "Quantity": [escape(row.quantity) for row in rows],
            "Pipeline Lab": [escape(row.ours) for row in rows],
            "XProf": [escape(row.xprof) for row in rows],
            "Why they differ": [escape(" ".join(row.reasons)) if row.reasons else "they agree" for row in rows],
        }
    )
    if check.seconds is not None and check.peak_rss_bytes is not None:
        took = format_duration(check.seconds * NS_PER_S)
        st.caption(f"xprof {check.version}, {took}, {format_bytes(check.peak_rss_bytes)} of memory.")
