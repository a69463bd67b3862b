"""Start a search for a faster pipeline: the model proposes, races decide."""

import streamlit as st

from pipeline_lab.errors import PipelineLabError
from pipeline_lab.options.tune_options import TuneOptions, read_tune_options
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui.serving import access
from pipeline_lab.ui.shared import cache, links
from pipeline_lab.ui.shared.choices import offer_arms, read_arm, warn_of_unknown
from pipeline_lab.ui.shared.draft import Document
from pipeline_lab.ui.shared.field_editors import edit_settings
from pipeline_lab.ui.shared.text import prose, sentence

_MAIN = ("budget_s", "max_configurations", "max_memory_mb", "max_threads", "may_reorder")
_FINE = ("margin_percent", "explore", "block_steps", "pairs", "seed")


def show_start(store: RunStore) -> str | None:
    """Let the user choose where the search starts; the page's link suggests it."""
    offered = offer_arms(store)
    named = st.query_params.get(links.START_PARAMETER, "preset:baseline")
    warn_of_unknown([named], offered)
    places = list(offered)
    return st.selectbox(
        "Start from",
        places,
        places.index(named) if named in offered else None,
        format_func=lambda arm: offered.get(arm, arm),
        key=f"tune-start-{named[:300]}",
        placeholder="a preset, a run, or the form of New run",
    )


def show_limits() -> Document:
    """Show the search's budget and constraints and return them as options."""
    return edit_settings(TuneOptions, "tune", _MAIN, _FINE)


def read_tune(store: RunStore, start: str, settings: Document) -> TuneOptions:
    """Return the options of the search that was chosen.

    Raises:
        OptionsError: The start cannot be searched from, or a number is not allowed.
        StoreError: A run is gone.
    """
    from pipeline_lab.tuning.search_launch import check_tune

    chosen = access.check_launch(read_arm(store, start))
    options = read_tune_options({"start": chosen.model_dump(mode="json"), **settings})
    check_tune(options)
    return options


def show_page() -> None:
    st.title("Is there a faster pipeline?", anchor=False)
    st.caption(
        "A profile shows the bottleneck, a model proposes changes, and races decide. The gain is measured against the start."
    )
    store = cache.store()
    start = show_start(store)
    settings = show_limits()
    problem, options = "", None
    if start is None:
        st.info("Choose where the search starts.")
    else:
        try:
            options = read_tune(store, start, settings)
        except PipelineLabError as error:
            problem = str(error)
    if problem:
        st.error(f"Not ready to search. {prose(sentence(problem))}")
    if st.button("Start the search", type="primary", disabled=options is None, key="tune-start") and options:
        from pipeline_lab.tuning.search_launch import launch_tune

        links.open_run(launch_tune(store, options).id)


if __name__ == "__main__":  # Streamlit runs this file as a script
    show_page()
