"""Where a search starts, what it may spend and what it must respect: the fields of the page *Tune*."""

import streamlit as st

from pipeline_lab.options.tune_options import TuneOptions, read_tune_options
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui import leave, links, race_form
from pipeline_lab.ui.draft import Document
from pipeline_lab.ui.fields import edit_fields

_MAIN = ("budget_s", "max_configurations", "max_memory_mb", "max_threads", "may_reorder")
_FINE = ("margin_percent", "explore", "block_steps", "pairs", "seed")


def show_start(store: RunStore) -> str | None:
    """Let the user choose where the search starts; the page's link suggests it."""
    offered = race_form.offer_arms(store)
    named = st.query_params.get(links.START_PARAMETER, "preset:baseline")
    race_form.warn_of_unknown([named], offered)
    places = list(offered)
    return st.selectbox(
        "Start from",
        places,
        places.index(named) if named in offered else None,
        format_func=lambda arm: offered.get(arm, arm),
        key=f"tune-start-{named[:300]}",
        placeholder="a preset, a run, or what New run shows",
    )


def show_limits() -> Document:
    """Show what the search may spend and must respect, and return it as options hold it."""
    fields = TuneOptions.model_fields
    values: Document = {name: fields[name].default for name in (*_MAIN, *_FINE)}
    values = edit_fields(TuneOptions, values, "tune", skip=_all_but(_MAIN))
    with st.expander("More settings"):
        return edit_fields(TuneOptions, values, "tune", skip=_all_but(_FINE))


def read_tune(store: RunStore, start: str, settings: Document) -> TuneOptions:
    """Return the options of the search that was chosen.

    Raises:
        OptionsError: The start cannot be searched from, or a number is not allowed.
        StoreError: A run is gone.
    """
    from pipeline_lab.tuning.search_launch import check_tune

    chosen = leave.check(race_form.read_arm(store, start))
    options = read_tune_options({"start": chosen.model_dump(mode="json"), **settings})
    check_tune(options)
    return options


def _all_but(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in TuneOptions.model_fields if name not in names)
