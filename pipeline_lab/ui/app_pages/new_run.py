"""Assemble a pipeline and launch it; the source on the right is the file that will run."""

import streamlit as st

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.run_options import read_options
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.launch.launchable import check_launchable
from pipeline_lab.runs.launch.launcher import launch
from pipeline_lab.ui import advice, cache, forecast, form, keep_options, leave, links, origin, race_form, state
from pipeline_lab.ui.text import escape, sentence

st.title("Which pipeline do you want to try?", anchor=False)
st.caption("Assemble the input pipeline stage by stage, choose what to train, and launch.")
origin.load(cache.store())

draft = state.draft()
launch_place = st.container(key="launch-place")  # on a phone the form is long; the way out of it comes first
left, right = st.columns([6, 5], gap="large")
with left:
    offered = origin.offer_presets(cache.store())
    names = list(offered)
    current = draft.origin.removeprefix("preset:")
    st.selectbox(
        "Start from a preset",
        names,
        names.index(current) if current in names else None,
        format_func=lambda name: offered.get(name, name),
        key=f"preset{draft.generation}",
        placeholder=escape(origin.describe(draft.origin)),
        on_change=origin.choose_preset,
        args=(f"preset{draft.generation}",),
    )
    draft = form.edit_draft(draft)
    state.keep(draft)

problem, options = "", None
try:
    chosen = leave.check(read_options(draft.document))
    check_launchable(chosen)
    options = chosen
    state.remember_launchable(options)
    origin.update_link(options)
except OptionsError as error:
    problem = str(error)

with launch_place:
    if problem:
        st.error(f"Not ready to launch. {escape(sentence(problem))}")
    with st.container(horizontal=True):
        if st.button("Launch", type="primary", disabled=options is None, width="stretch", key="launch") and options:
            links.open_run(launch(cache.store(), options).id)
        if st.button("Race against …", disabled=options is None, key="race-form"):
            links.open_race([race_form.FORM])
        if st.button("Tune", disabled=options is None, key="tune-form", help="Search for a faster pipeline from here."):
            links.open_tune(race_form.FORM)
        keep_options.show(cache.store(), draft.origin, options)

with right:
    shown = options or state.launchable()
    if shown is not None:
        if options is None:
            st.caption("Advice and source of the form before it stopped being ready:")
        predicted = forecast.find(cache.store(), shown)
        if predicted is not None:
            forecast.show(cache.store(), predicted, shown)
        advice.show_advice(cache.store(), shown, predicted)
        st.markdown("**pipeline.py** — the file that will run")
        st.code(render_source(shown), language="python", height=640)
