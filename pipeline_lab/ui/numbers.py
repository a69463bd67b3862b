"""Numbers side by side, each with its name and, where the glossary knows it, what it means."""

from collections.abc import Iterable

import streamlit as st

from pipeline_lab.ui.glossary import explain
from pipeline_lab.ui.text import escape, sentence

COLUMNS = 6
"""In a row at most; fewer where they would get narrow."""
NARROWEST_PX = 160


def show(numbers: Iterable[tuple[str, str]]) -> None:
    """Show names and values."""
    shown = list(numbers)
    if not shown:
        return
    with st.grid(min(COLUMNS, len(shown)), min_column_width=NARROWEST_PX, gap="small"):
        for name, value in shown:
            with st.container(gap=None):
                st.markdown(f":gray[{escape(sentence(name))}]", help=explain(name))
                st.markdown(f"**{escape(value)}**")
