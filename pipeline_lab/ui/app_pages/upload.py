"""Open a log of any job: drop it or name its path, watch it being read, and its run's page opens."""

import streamlit as st

from pipeline_lab.ui import analyses, cache, capture_form, keeping, links, opening, server_paths, upload_zone
from pipeline_lab.ui.text import escape

st.title("What does a log say?", anchor=False)
st.caption(
    "A profile that any TensorFlow, Keras or JAX job recorded becomes a run: its verdict first, then the charts."
)
store = cache.store()

folder = opening.under_way(store)
if folder is not None:
    with st.container(border=True, key="opening"):
        st.markdown(f"**{escape(store.read(folder.id).name)}**")
        if analyses.wait_for(folder, is_sample=False) is not None:
            links.open_run(folder.id)
        if st.button("Throw away", key="throw-away"):
            keeping.throw_away(store, folder)

if upload_id := upload_zone.show(folder.id if folder else ""):
    opening.open_upload(store, upload_id)

if reason := server_paths.problem():
    st.caption(escape(reason))
else:
    with st.form("by-path", border=False):
        path = st.text_input(
            "Or a path on this machine", key="path", placeholder="a file, a log directory, an archive or a run folder"
        )
        is_asked = st.form_submit_button("Open", key="open-path")
    if is_asked and path.strip():
        opening.open_path(store, path)

capture_form.show(store)
