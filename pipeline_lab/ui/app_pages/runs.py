"""Every run in a table; the chosen one can be opened, renamed, tagged, copied into the form or deleted; several are compared."""

import streamlit as st

from pipeline_lab.ui import cache, manage
from pipeline_lab.ui.listing import COLUMN_CONFIG, find_runs, runs_table
from pipeline_lab.ui.text import escape

st.title("What has run so far?", anchor=False)
store = cache.store()
words = st.text_input(
    "Search", key="search", placeholder="name, state, preset or tag", bind="query-params", label_visibility="collapsed"
)
records = find_runs(store, words or "")
if not records:
    st.info("No run fits the search." if words else "There are no runs yet; launch one from the page New run.")
    st.stop()
with st.spinner("Reading the numbers of the runs"):  # once for each run
    table = runs_table(store, records)
chosen = st.dataframe(
    table,
    column_config=COLUMN_CONFIG,
    hide_index=True,
    lazy=False,
    on_select="rerun",
    selection_mode="multi-row",
    key="runs",
    alt="All runs with state, step time, input wait and tags",
)
selected = [records[row] for row in chosen.selection.rows if row < len(records)]
if len(selected) > 1:
    manage.show_comparison(selected)
elif selected:
    manage.show_actions(store, selected[0], can_open=True)
else:
    own = sum(not store.is_sample(record.id) for record in records)
    others = len(records) - own
    samples = f", and {'1 sample' if others == 1 else f'{others} samples'}" if others else ""
    st.caption(
        f"{'1 run' if own == 1 else f'{own} runs'} in {escape(str(store.root))}{samples}. Choose one to open, tag or delete it, "
        "several to compare them."
    )
