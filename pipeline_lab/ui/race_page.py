"""Start a race: two or more pipelines take turns until one is known to be faster."""

from collections.abc import Sequence

import streamlit as st

from pipeline_lab.errors import PipelineLabError
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.runs.launch.launcher import launch
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui.serving import access
from pipeline_lab.ui.shared import cache, links
from pipeline_lab.ui.shared.choices import offer_arms, read_arm, warn_of_unknown
from pipeline_lab.ui.shared.draft import Document
from pipeline_lab.ui.shared.field_editors import edit_settings
from pipeline_lab.ui.shared.text import prose, sentence

MAX_ARMS = 8
_BUDGET = ("pairs", "block_steps", "max_seconds", "margin_percent", "fail_if_slower_percent")
_FINE = ("warmup_seconds", "max_extra_load_percent", "alpha", "seed", "timeout_s")


def show_arms(store: RunStore) -> list[str]:
    """Let the user choose the arms, the baseline first; the page's link suggests them."""
    offered = offer_arms(store)
    named = st.query_params.get(links.ARMS_PARAMETER, "")
    warn_of_unknown(named.split(","), offered)
    return st.multiselect(
        "Arms, the baseline first",
        list(offered),
        [arm for arm in dict.fromkeys(named.split(",")) if arm in offered][:MAX_ARMS],
        format_func=lambda arm: offered.get(arm, arm),
        max_selections=MAX_ARMS,
        key=f"race-arms-{named[:300]}",
        placeholder="presets, runs, or the form of New run",
        help="The others are compared with the first.",
    )


def show_budget() -> Document:
    """Show the race's limits and margins and return them as options."""
    values = edit_settings(RaceOptions, "race", _BUDGET, _FINE)
    return {"name": st.text_input("Name", "", max_chars=200, key="race.name", placeholder="the arms' names"), **values}


def read_race(store: RunStore, arms: Sequence[str], settings: Document) -> RaceOptions:
    """Return the options of the race that was chosen.

    Raises:
        OptionsError: The arms cannot race, or a number is not allowed; the text says which.
        StoreError: A run is gone.
    """
    from pipeline_lab.comparison.racing import choose_race

    return choose_race([access.check_launch(read_arm(store, arm)) for arm in arms], **settings)


def show_page() -> None:
    st.title("Which pipeline is faster?", anchor=False)
    st.caption(
        "Pipelines run in alternating blocks in one process, until one is known to be faster or the budget is used up."
    )
    store = cache.store()
    arms = show_arms(store)
    settings = show_budget()
    problem, options = "", None
    try:
        options = read_race(store, arms, settings)
    except PipelineLabError as error:
        problem = str(error)
    if len(arms) < 2:
        st.info("Choose at least two arms; the first is the baseline.")
    elif problem:
        st.error(f"Not ready to race. {prose(sentence(problem))}")
    if st.button("Start the race", type="primary", disabled=options is None, key="race-start") and options:
        links.open_run(launch(store, options).id)


if __name__ == "__main__":  # Streamlit runs this file as a script
    show_page()
