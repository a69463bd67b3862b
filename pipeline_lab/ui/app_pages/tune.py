"""Start a search for a faster pipeline: the model proposes, races decide."""

import streamlit as st

from pipeline_lab.errors import PipelineLabError
from pipeline_lab.ui import cache, links, tune_form
from pipeline_lab.ui.text import escape, sentence

st.title("Is there a faster pipeline?", anchor=False)
st.caption(
    "A profile tells what binds, a model proposes what else to try, and races decide. What the winner gains is measured "
    "against the start."
)
store = cache.store()
start = tune_form.show_start(store)
settings = tune_form.show_limits()
problem, options = "", None
if start is None:
    st.info("Choose where the search starts.")
else:
    try:
        options = tune_form.read_tune(store, start, settings)
    except PipelineLabError as error:
        problem = str(error)
if problem:
    st.error(f"Not ready to search. {escape(sentence(problem))}")
if st.button("Start the search", type="primary", disabled=options is None, key="tune-start") and options:
    from pipeline_lab.tuning.search_launch import launch_tune

    links.open_run(launch_tune(store, options).id)
