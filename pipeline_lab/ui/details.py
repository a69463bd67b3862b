"""What stands behind a run: its options, the source that ran, where it ran, and its files."""

import json

import streamlit as st

from pipeline_lab.runs.record import RunRecord
from pipeline_lab.runs.store import RunFolder
from pipeline_lab.ui.routes import FILES, file_url, window_url
from pipeline_lab.ui.text import escape
from pipeline_lab.units import format_bytes

MAX_WINDOWS = 50


def show(record: RunRecord, folder: RunFolder) -> None:
    """Show options and source side by side, then the environment and the files."""
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Options", anchor=False)
        if record.options is None:
            st.caption("This run was not launched by Pipeline Lab; its options are unknown.")
        else:
            st.code(json.dumps(record.options, indent=2), language="json", height=520)
    with right:
        st.subheader("Source that ran", anchor=False)
        if folder.source.is_file():
            st.code(folder.source.read_text(encoding="utf-8"), language="python", height=520)
        else:
            st.caption("The run keeps no source.")
    if record.environment:
        st.subheader("Environment", anchor=False)
        st.table({"value": {name: _plain(value) for name, value in record.environment.items()}})
    _show_files(folder)


def _show_files(folder: RunFolder) -> None:
    st.subheader("Files", anchor=False)
    own = [(name, locate(folder), file_url(folder.id, name)) for name, locate in FILES.items()]
    windows = [
        (f"{window.name}/{path.name}", path, window_url(folder.id, window.name, path.name))
        for window in folder.windows()[:MAX_WINDOWS]
        for path in sorted(window.iterdir())
    ]
    lines = [
        f"- [{escape(name)}]({url}) {format_bytes(path.stat().st_size)}"
        for name, path, url in own + windows
        if path.is_file()
    ]
    st.markdown("\n".join(lines))
    left_out = len(folder.windows()) - MAX_WINDOWS
    if left_out > 0:
        st.caption(f"{left_out} more windows lie in the run's folder.")


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
