"""What stands behind a run: its options, the source that ran, where it ran, and its files."""

import json
from pathlib import Path

import streamlit as st

from pipeline_lab.analysis.diagnosis.inputs import opened_files
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.figures.chart_list import Topic
from pipeline_lab.report.content import Table
from pipeline_lab.report.numbers import section_rows
from pipeline_lab.report.run_report import section_tables
from pipeline_lab.runs.record import RunRecord
from pipeline_lab.runs.store import RunFolder
from pipeline_lab.ui import contents, numbers
from pipeline_lab.ui.routes import FILES, file_url, opened_url, window_url
from pipeline_lab.ui.text import escape
from pipeline_lab.units import format_bytes

MAX_WINDOWS = 50


def show(record: RunRecord, folder: RunFolder) -> None:
    """Show options and source side by side, then the environment and the files."""
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Options", anchor=False)
        if record.options is None:
            st.caption("This log was not recorded by Pipeline Lab; its job's options are unknown.")
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
        rows = tuple(_words(name, value) for name, value in record.environment.items())
        st.markdown(contents.write_table(Table("Environment", ("What", "Value"), rows)))
    show_files(folder)


def show_numbers(section: Topic, diagnosis: Diagnosis) -> None:
    """Show the numbers of a section side by side."""
    numbers.show(section.name, section_rows(section, diagnosis))


def show_tables(section: Topic, diagnosis: Diagnosis) -> None:
    """Show the tables of a section that can be folded; the others are in the reports."""
    for number, table in enumerate(section_tables(section, diagnosis)):
        if table.folded:
            contents.show_block(table, f"{section.name}-{number}")


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
    st.markdown("\n".join(lines))
    left_out = len(folder.windows()) - MAX_WINDOWS
    if left_out > 0:
        st.caption(f"{left_out} more windows lie in the run's folder.")


def _opened(folder: RunFolder) -> list[tuple[str, Path, str]]:
    """Return name, place and link of the files that an opened log consists of."""
    files = [(path.relative_to(folder.opened).as_posix(), path) for path in opened_files(folder)[:MAX_WINDOWS]]
    return [(name, path, opened_url(folder.id, name)) for name, path in files]


def _words(name: str, value: object) -> tuple[str, str]:
    """Return name and value of one fact about the machine as people say them."""
    if name.endswith("_bytes") and isinstance(value, int):
        return _words(name.removesuffix("_bytes"), format_bytes(value))
    if isinstance(value, list):
        value = ", ".join(map(_entry, value)) or "none"
    spoken = {"cpu": "Processor", "gpus": "GPUs"}.get(name, name.replace("_", " ").capitalize())
    return spoken, value if isinstance(value, str) else json.dumps(value)


def _entry(value: object) -> str:
    """Return one of several: a GPU by its name and memory."""
    if not isinstance(value, dict):
        return str(value)
    return " · ".join(_words(name, part)[1] for name, part in value.items() if part is not None)
