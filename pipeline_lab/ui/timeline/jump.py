"""Links between charts, tables and the timeline of a run's page, and from a stage's bar to its details. The page's link
records the position.
"""

from collections.abc import Sequence

import streamlit as st

from pipeline_lab.figures.marks import stage_at
from pipeline_lab.ui.shared import state

TITLE = "Timeline"
TABS = "sections"
"""Key of the container that holds the page's tabs."""
SECTION, VIEW, PICK, STAGE = "section", "view", "pick", "stage"
"""Query parameters: the open tab; the stretch of time as ``START-END`` in ns; the chosen event; the chosen stage, the consumer
being 1.
"""
RANGE, MARKS = "range", "marks"
"""The chosen range as ``START-END``; the marked ones, with commas between."""


def to_place(place: str) -> None:
    """Open the timeline at an event or a stretch of time, as :mod:`pipeline_lab.figures.marks` names them.

    For use in callbacks.
    """
    kept = PICK if "@" in place else VIEW
    for name in {VIEW, PICK, RANGE} - {kept}:
        st.query_params.pop(name, None)
    st.query_params[kept] = place
    to_tab(TITLE)


def to_tab(title: str) -> None:
    """Open a tab of the page and bring it into view (for use in callbacks)."""
    state.choose(SECTION, title)
    state.ask_to_show(TABS)


def from_chart(places: list[Sequence[str] | None], curve: int, mark: int) -> None:
    """Open what a mark of a chart stands for (in callbacks).

    Args:
        places: Of the marks of each of the figure's traces; None where a trace's marks are not links.
        curve: The number of the trace.
        mark: The number of the mark in it.
    """
    found = places[curve] if curve < len(places) else None
    if found is None or mark >= len(found):
        return
    stage = stage_at(found[mark])
    if stage is None:
        to_place(found[mark])
    else:
        to_stage(stage)


def to_stage(number: int) -> None:
    """Choose the stage with that number, the consumer being 0."""
    st.query_params[STAGE] = str(number + 1)


def asked_stage(stages: int) -> int | None:
    """Return the number of the stage that the link names; None if there is no such stage."""
    asked = st.query_params.get(STAGE, "")
    return int(asked) - 1 if asked.isdecimal() and 1 <= int(asked) <= stages else None


def go_back() -> None:
    """Open the section that the timeline's button names (a callback)."""
    section = getattr(state.widget_value("timeline"), "section", None)
    if section:
        to_tab(str(section))


def asked_place() -> dict[str, str]:
    """Return what the link says of the timeline: its view, the chosen event or range, the marks; empty where it says nothing."""
    return {name: st.query_params.get(name, "") for name in (VIEW, PICK, RANGE, MARKS)}
