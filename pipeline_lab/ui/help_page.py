"""What the words mean, and what the app was started with."""

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
    yield Setting("Made data and saved analyses of single files", cache, "PIPELINE_LAB_CACHE")
    yield Setting("Largest upload", format_bytes(uploads.limit_bytes()), "PIPELINE_LAB_UPLOAD_LIMIT_MB")
    yield Setting("Paths on this machine that may be opened", _paths(), "PIPELINE_LAB_PATHS, folders parted by colons")
    yield Setting(
        "Launching, opening, changing, deleting",
        "not allowed: only to look" if access.why_read_only() else "allowed",
        f"{access.CHANGES_VARIABLE}=1 or 0; without it, as long as only this machine is answered",
    )
    code = "allowed" if access.may_run_code() else "not allowed"
    yield Setting(
        "Workloads that run your own Python code", code, f"`pipeline-lab app --allow-code`, or {access.CODE_VARIABLE}=1"
    )
    reach = "this machine only" if access.is_local() else f"other machines too ({st.get_option('server.address')})"
    yield Setting(
        "Answers", reach, "`--server.address` of `streamlit run`; see the page on servers in the documentation"
    )
    yield Setting(
        "Answers to the names", ", ".join(access.allowed_hosts()), "PIPELINE_LAB_HOSTS, names parted by commas"
    )
    telemetry = "on" if st.get_option("browser.gatherUsageStats") else "off: nothing is sent anywhere"
    yield Setting("Telemetry", telemetry, "–")


def _paths() -> str:
    if problem := access.why_no_paths():
        return problem
    named = os.environ.get("PIPELINE_LAB_PATHS")
    return "all that you may read" if named is None else named


def show_page() -> None:
    st.title("What does it mean, and how is it set?", anchor=False)
    words, set_up = st.tabs(["Words", "Settings"])
    with words:
        wanted = st.text_input("Find a word", key="word", placeholder="stall, race, coverage …").strip().lower()
        found = {word: text for word, text in GLOSSARY.items() if wanted in f"{word} {text}".lower()}
        with st.grid(2, min_column_width=420):
            for word, text in found.items():
                st.markdown(f"**{escape(word)}**  \n{escape(text)}")
        if not found:
            st.info("No word of the app says that; the documentation explains every number.")
    with set_up:
        st.caption("Settings are fixed when the app starts: no page can change them.")
        rows = tuple((each.name, each.value, each.change) for each in settings(cache.store()))
        st.markdown(write_table(Table("Settings", ("Setting", "Now", "Changed by"), rows)))


if __name__ == "__main__":  # as which Streamlit runs it
    show_page()
