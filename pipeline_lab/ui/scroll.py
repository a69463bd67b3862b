"""Bring a part of the page into view whose content was chosen elsewhere on it: Streamlit leaves the page where it is."""

import streamlit as st

from pipeline_lab.ui import state

_JS = """export default function ({ data }) {
  document.querySelector(`.st-key-${data.part}`)?.scrollIntoView({ block: "start" })
}"""
_component = st.components.v2.component("pipeline_lab_scroll", html="<span></span>", js=_JS)


def show_if_asked(part: str) -> None:
    """Bring the container with that key into view if a callback has asked for it."""
    if state.take_part_to_show() == part:
        _component(key=f"scroll-{part}", data={"part": part})
