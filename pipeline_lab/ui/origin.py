"""Where a draft comes from: a preset, or the options of an earlier run. The page's link says which."""

import streamlit as st

from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.run import RunOptions, read_options
from pipeline_lab.runs.record import RunKind
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui import state

PARAMETER = "from"


def load(store: RunStore) -> None:
    """Start the draft from what the link says, unless it was started from there already.

    Raises:
        OptionsError, StoreError: There is no such preset or run, or the run was not launched by us.
    """
    origin = st.query_params.get(PARAMETER, "")
    if origin and origin != state.draft_origin():
        state.start(read_origin(origin, store), origin)


def choose_preset(key: str) -> None:
    """Start anew from the preset that the widget of that key shows (a callback)."""
    if name := state.widget_value(key):
        state.start(find_preset(name).options, f"preset:{name}")
        st.query_params[PARAMETER] = f"preset:{name}"


def describe(origin: str) -> str:
    """Say where a draft comes from."""
    kind, _, name = origin.partition(":")
    return f"options of run {name}" if kind == "run" else name


def read_origin(origin: str, store: RunStore) -> RunOptions:
    """Return the options of ``preset:NAME`` or ``run:ID``.

    Raises:
        OptionsError, StoreError: There is no such preset or run, or the run was not launched by us.
    """
    kind, _, name = origin.partition(":")
    if kind == "preset":
        return find_preset(name).options
    if kind != "run":
        raise OptionsError(f"{origin[:80]!r} is no start for a new run; write preset:NAME or run:ID.")
    record = store.read(name)
    if record.kind is RunKind.LOG:
        raise StoreError(f"Run {name} was not launched by Pipeline Lab, so it has no options to start from.")
    if record.kind is not RunKind.RUN:
        raise OptionsError(f"{name} is a {record.kind.value}; start from the options of a run in it, or from a preset.")
    return read_options(record.options or {})
