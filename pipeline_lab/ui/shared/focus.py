"""Keyboard focus and scroll position after a rerun.

During a rerun Streamlit disables the tabs, so the browser drops the focus and keyboard users would start over at the top
of the page. Streamlit also does not scroll to a part of the page that a callback has chosen.
"""

import streamlit as st

from pipeline_lab.ui.shared import state

_TAB_JS = """function giveBack({ target: tab, relatedTarget }) {
  const isDisabled = tab.getAttribute("role") === "tab" && !tab.hasAttribute("tabindex")
  if (relatedTarget || !isDisabled) return
  const watcher = new MutationObserver(() => {
    watcher.disconnect()
    if (document.activeElement === document.body) tab.focus({ preventScroll: true })
  })
  watcher.observe(tab, { attributeFilter: ["tabindex"] })
}

export default function () {
  document.addEventListener("focusout", giveBack)
  return () => document.removeEventListener("focusout", giveBack)
}"""
_tab_component = st.components.v2.component("pipeline_lab_tab_focus", html="<span></span>", js=_TAB_JS)


def keep_on_tab() -> None:
    """Restore the focus to a tab that was disabled for a moment."""
    _tab_component(key="tab-focus")


_SCROLL_JS = """export default function ({ data }) {
  document.querySelector(`.st-key-${data.part}`)?.scrollIntoView({ block: "start" })
}"""
_scroll_component = st.components.v2.component("pipeline_lab_scroll", html="<span></span>", js=_SCROLL_JS)


def show_if_asked(part: str) -> None:
    """Scroll to the container with that key if a callback has asked for it."""
    if state.take_part_to_show() == part:
        _scroll_component(key=f"scroll-{part}", data={"part": part})
