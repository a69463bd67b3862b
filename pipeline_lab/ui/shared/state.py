"""The state of one browser session; the only place that touches ``st.session_state``."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import streamlit as st

from pipeline_lab.errors import PipelineLabError
from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.ui.shared.draft import Draft, start_draft
from pipeline_lab.ui.shared.text import prose, sentence

_DRAFT, _PROBLEM, _LAUNCHABLE, _LINKED, _PART_TO_SHOW = "draft", "problem", "launchable", "linked", "part-to-show"
DEFAULT_ORIGIN = "preset:baseline"


def draft() -> Draft:
    """Return the options that this session assembles; a new session starts with the baseline preset."""
    if _DRAFT not in st.session_state:
        start(find_preset("baseline").options, DEFAULT_ORIGIN)
    return cast("Draft", st.session_state[_DRAFT])


def draft_origin() -> str:
    """Return where the draft comes from; empty while there is none."""
    kept = cast("Draft | None", st.session_state.get(_DRAFT))
    return kept.origin if kept else ""


def keep(changed: Draft) -> None:
    st.session_state[_DRAFT] = changed


def start(options: RunOptions, origin: str) -> None:
    """Replace the whole draft; its fields are rebuilt."""
    before = cast("Draft | None", st.session_state.get(_DRAFT))
    keep(start_draft(options, origin, before.generation + 1 if before else 0))


def change(options: RunOptions) -> None:
    """Put other options into the draft as if they had been typed: its origin stays."""
    before = draft()
    keep(replace(start_draft(options, before.origin, before.generation + 1), start=before.start))


def linked() -> str:
    """Return the form's state as the page's link carried it last; empty if it carried none."""
    return str(st.session_state.get(_LINKED, ""))


def remember_linked(word: str) -> None:
    st.session_state[_LINKED] = word


def set_problem(sentence: str) -> None:
    """Keep a sentence to show after the next run of the page (callbacks cannot show anything themselves)."""
    st.session_state[_PROBLEM] = sentence


@contextmanager
def keep_problem() -> Iterator[None]:
    """Keep what goes wrong inside, to be shown after the next run of the page (for callbacks)."""
    try:
        yield
    except PipelineLabError as error:
        set_problem(str(error))


@contextmanager
def show_problem() -> Iterator[None]:
    """Show what goes wrong inside, right here."""
    try:
        yield
    except PipelineLabError as error:
        st.error(prose(sentence(str(error))))


def take_problem() -> str:
    return str(st.session_state.pop(_PROBLEM, ""))


def ask_to_show(part: str) -> None:
    """Ask for the container with that key to be brought into view by the next run of the page."""
    st.session_state[_PART_TO_SHOW] = part


def take_part_to_show() -> str:
    return str(st.session_state.pop(_PART_TO_SHOW, ""))


def widget_value(key: str) -> Any:
    """Return what the widget of that key holds; None if it is not on the page."""
    return st.session_state.get(key)


def hold(key: str) -> None:
    """Keep a widget's value although its label has changed; call this before the widget is made."""
    if key in st.session_state:
        st.session_state[key] = st.session_state[key]


def remember_launchable(options: RunOptions) -> None:
    """Keep the last valid options, so that a mistake does not clear the preview."""
    st.session_state[_LAUNCHABLE] = options


def launchable() -> RunOptions | None:
    return cast("RunOptions | None", st.session_state.get(_LAUNCHABLE))


def chosen_rows(key: str) -> list[int]:
    """Return the numbers of the rows that are chosen in the table with that key."""
    table = st.session_state.get(key)
    return list(table.selection.rows) if table else []


def choose(key: str, value: Any) -> None:
    """Set the value of the widget with that key; call this in callbacks or before the widget is made."""
    st.session_state[key] = value
