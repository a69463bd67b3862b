"""Start a race: two or more option sets that take turns until it is known which is faster."""

import streamlit as st

from pipeline_lab.errors import PipelineLabError
from pipeline_lab.runs.launch.launcher import launch
from pipeline_lab.ui import cache, links, race_form
from pipeline_lab.ui.text import escape

st.title("Which pipeline is faster?", anchor=False)
st.caption(
    "Pipelines take turns in one process, in random order, until it is known which is faster or the budget is used up."
)
store = cache.store()
arms = race_form.show_arms(store)
settings = race_form.show_budget()
problem, options = "", None
try:
    options = race_form.read_race(store, arms, settings)
except PipelineLabError as error:
    problem = str(error)
if len(arms) < 2:
    st.info("Choose at least two arms; the first is the baseline.")
elif problem:
    st.error(f"Not ready to race. {escape(problem)}")
if st.button("Start the race", type="primary", disabled=options is None, key="race-start") and options:
    links.open_run(launch(store, options).id)
