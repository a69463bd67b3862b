"""The longest gaps and waits of a run as tables under their charts; a chosen row opens the timeline there."""

from functools import partial

import streamlit as st

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.chart_list import Topic
from pipeline_lab.figures.marks import event_place
from pipeline_lab.ui import state
from pipeline_lab.ui.timeline import jump
from pipeline_lab.units import format_duration

MAX_ROWS = 10
QUANTITIES = {"Starts", "Length", "Device idle meanwhile"}


def show(section: Topic, diagnosis: Diagnosis) -> None:
    """Show the table that belongs to a section, if there is one and something to show."""
    if section is Topic.GAPS and not isinstance(diagnosis.idle_gaps, Unavailable):
        longest = diagnosis.idle_gaps.inside.sort_by([("duration_ns", "descending")]).slice(0, MAX_ROWS)
        rows = longest.to_pylist()
        columns = {
            "Length": [format_duration(row["duration_ns"]) for row in rows],
            "Cause": [GapCause(row["cause"]).label for row in rows],
            "Host operation": [row["host_operation"] or "–" for row in rows],
            "Device": [row["device"] for row in rows],
        }
        _show("gap", "The longest idle gaps", columns, [row["start_ns"] for row in rows])
    elif section is Topic.STALLS and not isinstance(diagnosis.input_stalls, Unavailable):
        waits = diagnosis.input_stalls.table
        length = tables.ints(waits, "end_ns") - tables.ints(waits, "start_ns")
        rows = tables.take(waits, (-length).argsort(kind="stable")[:MAX_ROWS]).to_pylist()
        columns = {
            "Length": [format_duration(row["end_ns"] - row["start_ns"]) for row in rows],
            "Device idle meanwhile": [format_duration(row["exposed_ns"]) for row in rows],
            "Step": ["–" if row["step"] is None else str(row["step"]) for row in rows],
        }
        _show("wait", "The longest input waits", columns, [row["start_ns"] for row in rows])


def _show(kind: str, title: str, columns: dict[str, list[str]], starts_ns: list[int]) -> None:
    if not starts_ns:
        return
    st.markdown(f"**{title}** — choose one, or a bar of the charts above, to see it in the timeline.")
    shown = {"Starts": [format_duration(start) for start in starts_ns], **columns}
    key = f"longest-{kind}"
    st.dataframe(
        shown,
        column_config={name: st.column_config.Column(alignment="right") for name in QUANTITIES & shown.keys()},
        hide_index=True,
        lazy=False,
        key=key,
        on_select=partial(_open, key, kind, starts_ns),
        selection_mode="single-row",
        alt=title,
    )


def _open(key: str, kind: str, starts_ns: list[int]) -> None:
    """Open the timeline at the chosen row (a callback)."""
    rows = state.chosen_rows(key)
    if rows and rows[0] < len(starts_ns):
        jump.to_place(event_place(kind, starts_ns[rows[0]]))
