"""Recorded runs side by side: the answer, what differs in what they were told, then in what was measured."""

import streamlit as st

from pipeline_lab.ui import analyses, cache, compare_form, contents, export_links, subjects
from pipeline_lab.ui.text import escape

st.title("What differs between runs?", anchor=False)
store = cache.store()
folders = compare_form.chosen(store)
compare_form.show(store, folders)
if len(folders) < 2:
    st.info(
        f"Choose 2 to {subjects.MAX_RUNS} runs; the first is the baseline. Running jobs and races cannot be chosen."
    )
    st.stop()

unanalysed = subjects.find_unanalysed(store, folders)
if unanalysed is not None:
    st.caption(f"{escape(store.read(unanalysed.id).name)} is not analysed yet.")
    if analyses.wait_for(unanalysed, is_sample=store.is_sample(unanalysed.id)) is not None:
        st.rerun()
    st.stop()

content = subjects.open_report(store, folders).content()
differences, *sections = content.sections
st.header(escape(content.title), anchor=False)
contents.show_answer(content.answer)
contents.show_warnings(content)
compare_form.offer_race(store, folders)
with st.container(border=True, key="differences"):
    st.subheader(escape(differences.title), anchor=False)
    contents.show_section(differences, "differences")
contents.show_tabs(tuple(sections), "compare-section")
export_links.show([folder.id for folder in folders])
