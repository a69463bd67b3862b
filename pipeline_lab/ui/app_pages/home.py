"""The first page: what this is, two recorded runs to look at, three ways in, the latest runs, presets to launch."""

import streamlit as st

from pipeline_lab.options.presets import PRESET_GROUPS
from pipeline_lab.ui import cache, cards, links

st.title("Why is your accelerator waiting?", anchor=False)
st.markdown(
    "Pipeline Lab trains a small TensorFlow job with the input pipeline that you assemble, records it with the "
    "profiler, and tells you **what the device waits for, what to change, and whether the change worked**."
)

store = cache.store()
runs = store.runs()
samples = [record for record in runs if store.is_sample(record.id)]
if samples:
    st.header("Look at a recorded run", anchor=False)
    with st.grid(2, min_column_width=300):
        for record in samples:
            cards.show_run(store, record)
    if len(samples) > 1 and st.button("Compare the two", key="compare-samples"):
        links.open_comparison([record.id for record in samples])

st.header("Start with your own", anchor=False)
cards.show_ways_in()

recent = [record for record in runs if not store.is_sample(record.id)][:4]
if recent:
    st.header("Your latest runs", anchor=False)
    with st.grid(2, min_column_width=300):
        for record in recent:
            cards.show_run(store, record)

st.header("Launch a preset", anchor=False)
for group in PRESET_GROUPS:
    st.subheader(f"{group.title}: {group.question}", anchor=False)
    with st.grid("auto", min_column_width=300):
        for preset in group.presets:
            cards.show_preset(store, preset)
