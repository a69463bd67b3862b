"""The script that Streamlit runs: page settings, navigation, and the one place where errors become sentences."""

from pathlib import Path

import streamlit as st

from pipeline_lab.errors import PipelineLabError
from pipeline_lab.ui.serving import access, server
from pipeline_lab.ui.shared import focus, links, state
from pipeline_lab.ui.shared.text import prose, sentence

ICON = Path(__file__).parent / "assets" / "icon.png"

st.set_page_config("Pipeline Lab", str(ICON), layout="wide", menu_items={"About": "Pipeline Lab"})
st.html(Path(__file__).parent / "assets" / "app.css")
page = st.navigation(
    [
        st.Page(each.path, title=each.title, url_path=each.url_path, help=each.help, default=each is links.HOME)
        for each in links.PAGES
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
        st.page_link(links.RUNS.path, label="All runs", icon=":material/list:")
        st.page_link(links.HOME.path, label="Home", icon=":material/home:")
if problem := state.take_problem():
    st.error(prose(sentence(problem)))
focus.keep_on_tab()
server.prepare()
