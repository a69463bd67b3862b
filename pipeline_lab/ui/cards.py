"""Runs and presets as cards: enough to recognise one, and a button to go on."""

import streamlit as st

from pipeline_lab.options.presets import Preset
from pipeline_lab.runs.launch.launcher import launch
from pipeline_lab.runs.record import RunKind, RunRecord, RunState
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui import links
from pipeline_lab.ui.cache import summary
from pipeline_lab.ui.text import escape, format_moment
from pipeline_lab.units import NS_PER_MS, format_duration, format_percent

_STATE_COLOURS = {
    RunState.DONE: "green",
    RunState.FAILED: "red",
    RunState.LOST: "red",
    RunState.CANCELLED: "gray",
}


def state_badge(store: RunStore, record: RunRecord) -> str:
    """Return the run's state as a coloured badge in Markdown."""
    if store.is_sample(record.id):
        return ":violet-badge[sample]"
    return f":{_STATE_COLOURS.get(record.status.state, 'blue')}-badge[{record.status.state.value}]"


def show_run(store: RunStore, record: RunRecord) -> None:
    """Show a run with its two headline numbers and a button that opens it."""
    numbers = summary(store.folder(record.id))
    with st.container(border=True, height="stretch", key=f"card-{record.id}"):
        st.markdown(f"**{escape(record.name)}** {state_badge(store, record)}")
        if numbers.step_ms is not None and numbers.wait_percent is not None:
            step = format_duration(numbers.step_ms * NS_PER_MS)
            st.markdown(f"Median step {step}, {format_percent(numbers.wait_percent)} of the time waiting for input")
        else:
            st.markdown(escape(record.status.reason) or _WITHOUT_STEPS[record.kind])
        st.caption(format_moment(record.status.created_s))
        if st.button("Open", key=f"open-{record.id}", help=f"Open the run {escape(record.name)}"):
            links.open_run(record.id)


_WITHOUT_STEPS = {
    RunKind.LOG: "Recorded elsewhere; open it to see what it says.",
    RunKind.RUN: "No measured steps yet.",
    RunKind.RACE: "A race: its arms took turns.",
    RunKind.TUNE: "A search for a faster pipeline.",
}


def show_ways_in() -> None:
    """Show where to go with a pipeline, a log or a training script of one's own."""
    with st.grid(3, min_column_width=300):
        with st.container(border=True, height="stretch"):
            st.markdown("**Assemble a pipeline**  \nStage by stage, with advice and a prediction before it runs.")
            st.space("stretch")
            if st.button("New run", key="way-new"):
                st.switch_page(links.NEW_RUN)
        with st.container(border=True, height="stretch"):
            st.markdown("**Open a log**  \nA profile that any TensorFlow, Keras or JAX job recorded, as it is.")
            st.space("stretch")
            if st.button("Open a log", key="way-log"):
                st.switch_page(links.UPLOAD)
        with st.container(border=True, height="stretch"):
            st.markdown("**Watch your own training**  \nNo line of the script changes; its run appears here.")
            st.space("stretch")
            st.code("pipeline-lab watch train.py", language="shell")


def show_preset(store: RunStore, preset: Preset) -> None:
    """Show a preset's question with buttons that launch it or open it in the form."""
    question, _, setting = preset.question.partition("? ")
    with st.container(border=True, height="stretch", key=f"preset-{preset.name}"):
        st.markdown(f"**{preset.name}**  \n{question}?")
        if setting:
            st.markdown(f":small[{setting}]")
        st.space("stretch")
        with st.container(horizontal=True):
            if st.button("Launch", key=f"launch-{preset.name}", help=f"Launch {preset.name} now"):
                links.open_run(launch(store, preset.options).id)
            if st.button("Edit first", key=f"edit-{preset.name}", help=f"Open {preset.name} in the form"):
                links.open_new_run(preset.options, f"preset:{preset.name}")
