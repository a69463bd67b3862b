"""The timeline on a page: a separate process makes its index, then the canvas fetches its views."""

from pathlib import Path

import streamlit as st

from pipeline_lab.analysis.timeline.arrangement import arrange_lanes
from pipeline_lab.analysis.timeline.index import Index
from pipeline_lab.analysis.timeline.lanes import CLASSES
from pipeline_lab.analysis.timeline.shown_axis import collapse_unrecorded
from pipeline_lab.analysis.timeline.view import profile_windows
from pipeline_lab.figures.theme import THEMES
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.ui.shared.analyses import Attempts
from pipeline_lab.ui.shared.chart import PAGE_THEME
from pipeline_lab.ui.shared.text import prose
from pipeline_lab.ui.timeline import answers, jump, timeline_routes
from pipeline_lab.ui.timeline.explain import class_name
from pipeline_lab.units import format_count, format_duration, keep_together

POLL_S = 0.5
SCRIPTS = ("timeline", "time_axis", "gestures", "panels", "paint", "minimap")
"""The canvas' code, put together in this order."""
_attempts = Attempts()
_HERE = Path(__file__)
_canvas = st.components.v2.component(
    "pipeline_lab_timeline",
    html=_HERE.with_name("timeline.html").read_text(encoding="utf-8"),
    css=_HERE.with_name("timeline.css").read_text(encoding="utf-8"),
    js="\n".join([PAGE_THEME, *(_HERE.with_name(f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)]),
)


def show(folder: RunFolder) -> None:
    """Show the timeline of a run that is over; until its index is made, say so."""
    from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis

    place = SavedDiagnosis(folder.path)
    made = place.timeline
    if made is None:
        _show_waiting(folder)
        return
    index = answers.open_timeline(folder, made.name)
    _show_canvas(folder, made.name, index, has_sections=True)
    _show_notes(index)


def show_so_far(folder: RunFolder) -> None:
    """Show the timeline of the windows of a run in progress, as far as they are indexed."""
    from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis

    made = SavedDiagnosis(folder.path).latest_timeline
    if made is None:
        return
    try:
        index = answers.open_timeline(folder, made.name)
    except (LookupError, OSError, ValueError):  # a newer one is replacing it
        return
    windows = len(profile_windows(index))
    st.caption(
        f"The timeline of the first {'profile window' if windows == 1 else f'{windows} profile windows'}; it is extended when "
        "as many more are on disk."
    )
    _show_canvas(folder, made.name, index, has_sections=False)
    _show_notes(index)


def _show_canvas(folder: RunFolder, name: str, index: Index, *, has_sections: bool) -> None:
    axis = collapse_unrecorded(index)
    _canvas(
        key="timeline",
        data={
            "url": timeline_routes.url_of(folder.id, name),
            "sections": has_sections,
            "lanes": arrange_lanes(index),
            "classes": _classes(index),
            "start": index.start_ns,
            "end": max(index.end_ns, index.start_ns + 1),
            "breaks": axis.breaks.tolist(),
            "room": axis.room_ns,
            "asked": jump.asked_place(),
        },
        on_section_change=jump.go_back,
    )


def _classes(index: Index) -> list[dict[str, str | bool]]:
    used = {group.event_class for groups in index.groups.values() for group in groups}
    return [
        {
            "title": class_name(name),
            **{
                mode: theme.categories.get({"other": "unknown"}.get(name, name), theme.muted)
                for mode, theme in THEMES.items()
            },
            "used": number in used and name != "window",
        }
        for number, name in enumerate(CLASSES)
    ]


def _show_notes(index: Index) -> None:
    if unreadable := index.facts.get("unreadable", 0):
        st.caption(f"{unreadable} of the run's traces could not be read; their time range is empty.")
    if left_out := index.facts.get("gaps_left_out", 0):
        together = keep_together(format_duration(index.facts["left_out_ns"]))
        st.caption(
            f"{format_count(left_out)} idle gaps are too short to draw individually ({together} in total): stretches of work and "
            "short gaps show their number; the threads below show what happened in them."
        )
    if deeper := sum(lane.deeper for lane in index.lanes):
        st.caption(f"{format_count(deeper)} events are nested too deeply to show.")


@st.fragment(run_every=POLL_S)
def _show_waiting(folder: RunFolder) -> None:
    from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis

    place = SavedDiagnosis(folder.path)
    if place.timeline is not None:
        st.rerun()
    attempt = _attempts.start(folder, "--timeline")
    if attempt.has_failed:
        st.info(prose(place.error or "The timeline could not be created, and no reason is known."))
        if st.button("Try again", key="timeline-again"):
            _attempts.forget(folder)
        return
    done = place.progress
    text = f"Preparing the timeline: window {done.done + 1} of {done.total}" if done else "Preparing the timeline"
    st.progress(done.done / done.total if done and done.total else 0.0, text=text)
