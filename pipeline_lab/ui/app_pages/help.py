"""What the words mean, and what the app was started with."""

import streamlit as st

from pipeline_lab.report.content import Table
from pipeline_lab.ui import cache
from pipeline_lab.ui.contents import write_table
from pipeline_lab.ui.glossary import GLOSSARY
from pipeline_lab.ui.settings import settings
from pipeline_lab.ui.text import escape

st.title("What does it mean, and how is it set?", anchor=False)
words, set_up = st.tabs(["Words", "Settings"])
with words:
    wanted = st.text_input("Find a word", key="word", placeholder="stall, race, coverage …").strip().lower()
    found = {word: text for word, text in GLOSSARY.items() if wanted in f"{word} {text}".lower()}
    with st.grid(2, min_column_width=420):
        for word, text in found.items():
            st.markdown(f"**{escape(word)}**  \n{escape(text)}")
    if not found:
        st.info("No word of the app says that; the documentation explains every number.")
with set_up:
    st.caption("Settings are fixed when the app starts: no page can change them.")
    rows = tuple((each.name, each.value, each.change) for each in settings(cache.store()))
    st.markdown(write_table(Table("Settings", ("Setting", "Now", "Changed by"), rows)))
