"""Details of a run: options, source, environment, files, and XProf's numbers next to ours."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from pipeline_lab.analysis.diagnosis.inputs import opened_files
from pipeline_lab.report.content import Table
from pipeline_lab.report.user_source import datasets_read
from pipeline_lab.runs.record import RunRecord
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.user_sources import kept_files
from pipeline_lab.ui.serving.routes import FILES, file_url, opened_url, window_url
from pipeline_lab.ui.shared import contents
from pipeline_lab.ui.shared.analyses import Attempts
from pipeline_lab.ui.shared.text import escape, prose
from pipeline_lab.units import NS_PER_S, format_bytes, format_duration, keep_together

if TYPE_CHECKING:
    from pipeline_lab.analysis.xprof.xprof_comparison import CrossCheck

MAX_WINDOWS = 50


def show(record: RunRecord, folder: RunFolder) -> None:
    """Show options and source side by side, then the environment and the files."""
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Options", anchor=False)
        if record.options is None:
            st.caption(_why_no_options(folder))
        else:
            st.code(json.dumps(record.options, indent=2), language="json", height=520)
    with right:
        st.subheader("Source", anchor=False)
        if folder.source.is_file():
            st.code(folder.source.read_text(encoding="utf-8", errors="replace"), language="python", height=520)
        else:
            _show_script(folder)
    for table in datasets_read(str(folder.path)):
        st.subheader(table.title, anchor=False)
        st.markdown(contents.write_table(table))
    if record.environment:
        st.subheader("Environment", anchor=False)
        rows = tuple(_words(name, value) for name, value in record.environment.items())
        st.markdown(contents.write_table(Table("Environment", ("What", "Value"), rows)))
    show_files(folder)


def _why_no_options(folder: RunFolder) -> str:
    """Say where the options of a job are that Pipeline Lab did not launch."""
    if folder.opened.is_dir():
        return "The log says nothing of the job's options."
    return "The job was watched as it is: what it reads and how is in its own code, beside this."


def _show_script(folder: RunFolder) -> None:
    """Show the files of the user's that the run keeps."""
    kept = kept_files(folder)
    for path, text in kept.items():
        st.caption(escape(path))
        st.code(text, language="python", height=520, line_numbers=True)
    if not kept:
        st.caption("This run has no source.")


def show_files(folder: RunFolder) -> None:
    """Show a link to each file of a run."""
    st.subheader("Files", anchor=False)
    own = [(name, locate(folder), file_url(folder.id, name)) for name, locate in FILES.items()]
    windows = [
        (f"{window.name}/{path.name}", path, window_url(folder.id, window.name, path.name))
        for window in folder.windows()[:MAX_WINDOWS]
        for path in sorted(window.iterdir())
    ]
    lines = [
        f"- [{escape(name)}]({url}) {format_bytes(path.stat().st_size)}"
        for name, path, url in own + windows + _opened(folder)
        if path.is_file()
    ]
    st.markdown(keep_together("\n".join(lines)))
    left_out = len(folder.windows()) - MAX_WINDOWS
    if left_out > 0:
        st.caption(f"{left_out} more windows are in the run's folder.")


def _opened(folder: RunFolder) -> list[tuple[str, Path, str]]:
    """Return name, place and link of the files that an opened log consists of."""
    files = [(path.relative_to(folder.opened).as_posix(), path) for path in opened_files(folder)[:MAX_WINDOWS]]
    return [(name, path, opened_url(folder.id, name)) for name, path in files]


_SPOKEN = {
    "cpu": "Processor",
    "gpus": "GPUs",
    "tensorflow": "TensorFlow",
    "numpy": "NumPy",
    "pipeline_lab": "Pipeline Lab",
}


def _words(name: str, value: object) -> tuple[str, str]:
    """Return name and value of one fact about the machine, for display."""
    if name.endswith("_bytes") and isinstance(value, int):
        return _words(name.removesuffix("_bytes"), format_bytes(value))
    if isinstance(value, list):
        value = ", ".join(map(_entry, value)) or "none"
    spoken = _SPOKEN.get(name, name.replace("_", " ").capitalize())
    return spoken, value if isinstance(value, str) else json.dumps(value)


def _entry(value: object) -> str:
    """Return one item of a list, such as a GPU with its memory."""
    if not isinstance(value, dict):
        return str(value)
    return " · ".join(_words(name, part)[1] for name, part in value.items() if part is not None)


POLL_S = 1.0
_attempts = Attempts()


def show_beside_xprof(folder: RunFolder) -> None:
    """Show the comparison, or a button that starts it."""
    from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis
    from pipeline_lab.analysis.xprof.xprof_comparison import CROSS_CHECK, CrossCheck

    place = SavedDiagnosis(folder.path)
    check = place.load_beside(CROSS_CHECK, CrossCheck)
    if check is not None:
        _show_cross_check(check)
        return
    attempt = _attempts.find(folder)
    if attempt is not None and attempt.is_running:
        _show_waiting(folder)
        return
    if attempt is not None:
        st.info(prose((place.error if attempt.has_failed else None) or "The comparison ended without a result."))
    st.markdown(
        "Compare these numbers with XProf's for the same traces. XProf runs in a separate process, limited to five "
        "minutes and 8 GB; the result is saved with the run."
    )
    st.caption("To open the traces in XProf itself; other machines on your network can reach its server:")
    st.code(f"xprof --logdir {shlex.quote(str(folder.path.parent))} --port 8791", language="shell")
    if st.button("Run XProf", key="ask-xprof", type="primary"):
        _attempts.forget(folder)
        _attempts.start(folder, "--xprof")
        st.rerun()


@st.fragment(run_every=POLL_S)
def _show_waiting(folder: RunFolder) -> None:
    attempt = _attempts.find(folder)
    if attempt is None or not attempt.is_running:
        st.rerun()
    st.markdown("XProf is reading the traces …")


def _show_cross_check(check: "CrossCheck") -> None:
    rows = check.differences
    st.table(
        {
            "Quantity": [escape(row.quantity) for row in rows],
            "Pipeline Lab": [escape(row.ours) for row in rows],
            "XProf": [escape(row.xprof) for row in rows],
            "Why they differ": [escape(" ".join(row.reasons)) if row.reasons else "–" for row in rows],
        }
    )
    if check.seconds is not None and check.peak_rss_bytes is not None:
        took = format_duration(check.seconds * NS_PER_S)
        st.caption(keep_together(f"xprof {check.version}, {took}, {format_bytes(check.peak_rss_bytes)} of memory."))
