"""From a gap, wait or step anywhere on a run's page to the timeline, and back. The link says where one is."""

from collections.abc import Sequence

import streamlit as st

from pipeline_lab.ui import state

TITLE = "Timeline"
SECTION, VIEW, PICK = "section", "view", "pick"
"""Query parameters: the open tab; the stretch of time as ``START-END`` in ns; the chosen event."""


def to_place(place: str) -> None:
    """Open the timeline at an event or a stretch of time, as :mod:`pipeline_lab.figures.places` names them.

    For use in callbacks.
    """
    kept, gone = (PICK, VIEW) if "@" in place else (VIEW, PICK)
    st.query_params[kept] = place
    st.query_params.pop(gone, None)
    state.open_tab(SECTION, TITLE)


def from_chart(key: str, places: list[Sequence[str] | None]) -> None:
    """Open the timeline where the mark that was chosen on a chart lies (a callback).

    Args:
        key: Of the chart.
        places: Of the marks of each of the figure's traces; None where a trace's marks lie nowhere.
    """
    for curve, mark in state.chosen_marks(key):
        found = places[curve] if curve < len(places) else None
        if found is not None and mark < len(found):
            to_place(found[mark])
            return


def go_back() -> None:
    """Open the section that the timeline's button names (a callback)."""
    section = getattr(state.widget_value("timeline"), "section", None)
    if section:
        state.open_tab(SECTION, str(section))


def asked_view() -> str:
    return st.query_params.get(VIEW, "")


def asked_pick() -> str:
    return st.query_params.get(PICK, "")
