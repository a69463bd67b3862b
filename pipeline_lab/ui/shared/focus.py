"""Where the page and the keyboard stand after a page was built anew.

While a page is built Streamlit disables the tabs, and the browser drops the focus: the next arrow key would go to the
page, and who uses the keyboard would start over from its top. And Streamlit leaves the page where it is when a part of
it was chosen elsewhere.
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
    """Give the focus back to a tab that lost it by being disabled for a moment."""
    _tab_component(key="tab-focus")


_SCROLL_JS = """export default function ({ data }) {
  document.querySelector(`.st-key-${data.part}`)?.scrollIntoView({ block: "start" })
}"""
_scroll_component = st.components.v2.component("pipeline_lab_scroll", html="<span></span>", js=_SCROLL_JS)


def show_if_asked(part: str) -> None:
    """Bring the container with that key into view if a callback has asked for it."""
    if state.take_part_to_show() == part:
        _scroll_component(key=f"scroll-{part}", data={"part": part})
