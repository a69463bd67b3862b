"""What the terms mean, and how the app was started."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import streamlit as st

from pipeline_lab.report.content import Table
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui.serving import access, uploads
from pipeline_lab.ui.shared import cache
from pipeline_lab.ui.shared.contents import write_table
from pipeline_lab.ui.shared.glossary import GLOSSARY
from pipeline_lab.ui.shared.text import escape
from pipeline_lab.units import format_bytes


@dataclass(frozen=True)
class Setting:
    """One setting, as the page lists it."""

    name: str
    value: str
    change: str


def settings(store: RunStore) -> Iterator[Setting]:
    """Return every setting of the running app."""
    yield Setting("Run store", str(store.root), "`pipeline-lab app --store DIR`, or PIPELINE_LAB_STORE")
    yield Setting("Bundled samples", "listed, read-only" if store.samples else "not installed", "–")
    cache = os.environ.get("PIPELINE_LAB_CACHE", "the user's cache folder")
    yield Setting("Cache of generated data and analyses", cache, "PIPELINE_LAB_CACHE")
    yield Setting("Largest upload", format_bytes(uploads.limit_bytes()), "PIPELINE_LAB_UPLOAD_LIMIT_MB")
    yield Setting("Paths on this machine that can be opened", _paths(), "PIPELINE_LAB_PATHS (separated by colons)")
    yield Setting(
        "Launching, opening, changing, deleting",
        "not allowed (view only)" if access.why_read_only() else "allowed",
        f"{access.CHANGES_VARIABLE}=1 or 0; by default allowed while the app serves only this machine",
    )
    code = "allowed" if access.may_run_code() else "not allowed"
    yield Setting(
        "Workloads that run custom Python code", code, f"`pipeline-lab app --allow-code`, or {access.CODE_VARIABLE}=1"
    )
    reach = "this machine only" if access.is_local() else f"other machines as well ({st.get_option('server.address')})"
    yield Setting("Serves", reach, "`--server.address` of `streamlit run`; see the documentation on servers")
    yield Setting("Host names", ", ".join(access.allowed_hosts()), "PIPELINE_LAB_HOSTS (comma-separated)")
    telemetry = "on" if st.get_option("browser.gatherUsageStats") else "off"
    yield Setting("Telemetry", telemetry, "–")


def _paths() -> str:
    if problem := access.why_no_paths():
        return problem
    named = os.environ.get("PIPELINE_LAB_PATHS")
    return "everything you can read" if named is None else named


def show_page() -> None:
    st.title("What do the terms mean, and how is the app set up?", anchor=False)
    words, set_up = st.tabs(["Terms", "Settings"])
    with words:
        wanted = st.text_input("Find a term", key="word", placeholder="stall, race, coverage …").strip().lower()
        found = {word: text for word, text in GLOSSARY.items() if wanted in f"{word} {text}".lower()}
        with st.grid(2, min_column_width=420):
            for word, text in found.items():
                st.markdown(f"**{escape(word)}**  \n{escape(text)}")
        if not found:
            st.info("No term matches; the documentation explains every number.")
    with set_up:
        st.caption("Settings are fixed when the app starts.")
        rows = tuple((each.name, each.value, each.change) for each in settings(cache.store()))
        st.markdown(write_table(Table("Settings", ("Setting", "Now", "Changed by"), rows)))


if __name__ == "__main__":  # Streamlit runs this file as a script
    show_page()
