"""Numbers side by side, each with its name and, where the glossary knows it, what it means."""

from collections.abc import Iterable

import streamlit as st

from pipeline_lab.ui.glossary import explain
from pipeline_lab.ui.text import escape, sentence

COLUMNS = 6
"""In a row at most; fewer where they would get narrow."""
NARROWEST_PX = 160


def show(key: str, numbers: Iterable[tuple[str, str]]) -> None:
    """Show names and values; ``key`` tells them apart from others on the page."""
    shown = list(numbers)
    if not shown:
        return
    with st.grid(min(COLUMNS, len(shown)), min_column_width=NARROWEST_PX, gap="small", key=f"numbers-{key}"):
        for name, value in shown:
            st.metric(escape(sentence(name)), escape(value), help=explain(name))
