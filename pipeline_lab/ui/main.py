"""The script that Streamlit runs: page settings, navigation, and the one edge where errors become sentences."""

from pathlib import Path

import streamlit as st

from pipeline_lab.errors import PipelineLabError
from pipeline_lab.ui.serving import access, server
from pipeline_lab.ui.shared import focus, links, state
from pipeline_lab.ui.shared.text import prose, sentence

ICON = Path(__file__).with_name("icon.png")

st.set_page_config("Pipeline Lab", str(ICON), layout="wide", menu_items={"About": "Pipeline Lab"})
st.html(Path(__file__).with_name("app.css"))
page = st.navigation(
    [
        st.Page(links.HOME, title="Pipeline Lab", url_path="home", default=True),
        st.Page(links.NEW_RUN, title="New run", url_path="new", help="Assemble an input pipeline and launch it."),
        st.Page(links.UPLOAD, title="Open a log", url_path="open", help="Diagnose a profile log of any job."),
        st.Page(links.RUNS, title="Runs", url_path="runs", help="Every run: search, open, tag, delete."),
        st.Page(links.COMPARE, title="Compare", url_path="compare", help="Recorded runs side by side."),
        st.Page(links.RACE, title="Race", url_path="race", help="Pipelines take turns: which is faster?"),
        st.Page(links.TUNE, title="Tune", url_path="tune", help="Search for a faster pipeline."),
        st.Page(links.RUN, title="Run", url_path="run", help="One run: verdict, charts, options, source."),
        st.Page(
            links.HELP, title="Help", url_path="help", help="What the words mean, and what the app was started with."
        ),
    ],
    position="top",
)
if only_shows := access.why_read_only():
    st.info(prose(only_shows), icon=":material/lock:")
try:
    page.run()
except PipelineLabError as error:
    st.error(prose(sentence(str(error))))
    with st.container(horizontal=True):
        st.page_link(links.RUNS, label="All runs", icon=":material/list:")
        st.page_link(links.HOME, label="First page", icon=":material/home:")
if problem := state.take_problem():
    st.error(prose(sentence(problem)))
focus.keep_on_tab()
server.prepare()
