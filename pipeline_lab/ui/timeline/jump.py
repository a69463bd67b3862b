"""From a gap, wait or step anywhere on a run's page to the timeline, and back. The link says where one is."""

import streamlit as st

from pipeline_lab.ui import state

TITLE = "Timeline"
SECTION, VIEW, PICK = "section", "view", "pick"
"""Query parameters: the open tab; the stretch of time as ``START-END`` in ns; the chosen event."""


def to_event(kind: str, start_ns: int) -> None:
    """Open the timeline at a ``gap``, ``wait`` or ``step`` (for use in callbacks)."""
    st.query_params[PICK] = f"{kind}@{start_ns}"
    st.query_params.pop(VIEW, None)
    state.open_tab(SECTION, TITLE)


def go_back() -> None:
    """Open the section that the timeline's button names (a callback)."""
    section = getattr(state.widget_value("timeline"), "section", None)
    if section:
        state.open_tab(SECTION, str(section))


def asked_view() -> str:
    return st.query_params.get(VIEW, "")


def asked_pick() -> str:
    return st.query_params.get(PICK, "")
