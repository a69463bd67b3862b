"""Keep the keyboard on its tab: while a page is built anew Streamlit disables the tabs, and the browser drops the focus.

Without this, the next arrow key goes to the page, and who uses the keyboard starts over from its top.
"""

import streamlit as st

_JS = """function giveBack({ target: tab, relatedTarget }) {
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
_component = st.components.v2.component("pipeline_lab_tab_focus", html="<span></span>", js=_JS)


def keep() -> None:
    """Give the focus back to a tab that lost it by being disabled for a moment."""
    _component(key="tab-focus")
